import { Redis } from 'ioredis';
import { redisStore } from './dist/stores/redis/index.js';
import { SCRIPT } from './dist/stores/redis/script.js';

const client = new Redis(21001);
await client.script('LOAD', SCRIPT);
const store = redisStore(client);
let n = 0;
const claim = (key) => ({
  kind: 'claim',
  key,
  hold: { process: 'abcdefghijklmnop12', number: ++n },
  owner: 'host:123',
  permits: 1,
  capacity: 1,
  ttlMs: 30000,
  queue: true,
  inbox: 'inboxabcdefghijkl12',
  metadata: null,
});
const release = (c) => ({ kind: 'release', key: c.key, hold: c.hold, minHoldMs: 0 });
const stat = async () => {
  const s = (await client.info('commandstats')).match(/cmdstat_evalsha:calls=(\d+),usec=(\d+)/);
  return [Number(s[1]), Number(s[2])];
};
for (const width of [1, 64]) {
  await client.config('RESETSTAT');
  const N = 20000 / width;
  const js = 0,
    c0 = process.cpuUsage();
  const t0 = performance.now();
  for (let i = 0; i < N; i++) {
    const cs = Array.from({ length: width }, (_, j) => claim('x' + (i % 50) + ':' + j));
    await Promise.all(store.apply(cs));
    await Promise.all(store.apply(cs.map(release)));
  }
  const c = process.cpuUsage(c0);
  const [calls, usec] = await stat();
  console.log({
    width,
    wallPerCmd: ((performance.now() - t0) * 1000) / (N * width * 2),
    serverPerCmd: usec / (N * width * 2),
    clientCpuPerCmd: (c.user + c.system) / (N * width * 2),
  });
}
// null script overheads
const shaE = await client.script('LOAD', 'return 1');
const shaF = await client.script('LOAD', SCRIPT.replace('for i = 1, #KEYS do', 'for i = 1, 0 do'));
const shaG = await client.script('LOAD', "local time = redis.call('TIME') return {1}");
for (const [name, sha] of [
  ['empty', shaE],
  ['noloop', shaF],
  ['time', shaG],
]) {
  await client.config('RESETSTAT');
  for (let i = 0; i < 10000; i++)
    await client.evalsha(
      sha,
      1,
      'k',
      'claim',
      'abcdefghijklmnop12',
      i,
      'host:123',
      1,
      1,
      30000,
      1,
      'inboxabcdefghijkl12',
      '',
    );
  const [calls, usec] = await stat();
  console.log(name, usec / calls);
}
client.disconnect();
