import { createHash } from 'node:crypto';
import { Redis } from 'ioredis';
import { redisStore } from './dist/stores/redis/index.js';
import { SCRIPT, SCRIPT_SHA } from './dist/stores/redis/script.js';

const client = new Redis(21001);
const MIN_A = `local t=redis.call('TIME') local v=redis.call('GET',KEYS[1]) if v then return false end
local tok=redis.call('INCR',KEYS[1]..':f') redis.call('SET',KEYS[1],ARGV[1],'PX',ARGV[2]) return {tok,t[1],t[2]}`;
const MIN_R = `if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) end return 0`;
const shaA = await client.script('LOAD', MIN_A),
  shaR = await client.script('LOAD', MIN_R);
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
const p50 = (a) => a.sort((x, y) => x - y)[a.length >> 1];
async function seqMin(count) {
  const ts = [];
  for (let i = 0; i < count; i++) {
    const t = performance.now();
    await client.evalsha(shaA, 1, 'min:' + (i % 500), 'tok' + i, 30000);
    await client.evalsha(shaR, 1, 'min:' + (i % 500), 'tok' + i);
    ts.push(performance.now() - t);
  }
  return p50(ts);
}
async function seqOurs(count) {
  const ts = [];
  for (let i = 0; i < count; i++) {
    const t = performance.now();
    const c = claim('k' + (i % 500));
    await store.apply([c])[0];
    await store.apply([release(c)])[0];
    ts.push(performance.now() - t);
  }
  return p50(ts);
}
async function par(fn, count, width) {
  const t = performance.now();
  let i = 0;
  await Promise.all(
    Array.from({ length: width }, async () => {
      while (i < count) await fn(i++);
    }),
  );
  return (count / (performance.now() - t)) * 1000;
}
const batch = [];
let sched = false;
function send(cmd) {
  return new Promise((resolve, reject) => {
    batch.push({ cmd, resolve, reject });
    if (!sched) {
      sched = true;
      queueMicrotask(() => {
        sched = false;
        const b = batch.splice(0);
        const rs = store.apply(b.map((x) => x.cmd));
        rs.forEach((r, i) => r.then(b[i].resolve, b[i].reject));
      });
    }
  });
}
for (let round = 0; round < 3; round++) {
  await client.flushdb();
  const a = await seqMin(3000),
    b = await seqOurs(3000),
    a2 = await seqMin(3000),
    b2 = await seqOurs(3000);
  const pm = await par(
    async (i) => {
      await client.evalsha(shaA, 1, 'min:' + (i % 5000), 'tok' + i, 30000);
      await client.evalsha(shaR, 1, 'min:' + (i % 5000), 'tok' + i);
    },
    15000,
    64,
  );
  const po = await par(
    async (i) => {
      const c = claim('p' + (i % 5000));
      await send(c);
      await send(release(c));
    },
    15000,
    64,
  );
  console.log({ seqMin: [a, a2], seqOurs: [b, b2], ratio: (b + b2) / (a + a2), parMin: pm, parOurs: po });
}
await client.config('RESETSTAT');
for (let i = 0; i < 5000; i++) {
  const c = claim('s' + (i % 50));
  await store.apply([c])[0];
  await store.apply([release(c)])[0];
}
console.log(
  (await client.info('commandstats'))
    .split('\n')
    .filter((l) => /evalsha|get|set/.test(l))
    .join('\n'),
);
await client.config('RESETSTAT');
for (let i = 0; i < 5000; i++) {
  await client.evalsha(shaA, 1, 'min:' + (i % 500), 'tok' + i, 30000);
  await client.evalsha(shaR, 1, 'min:' + (i % 500), 'tok' + i);
}
console.log(
  (await client.info('commandstats'))
    .split('\n')
    .filter((l) => /evalsha|get|set/.test(l))
    .join('\n'),
);
const rec = await client.getBuffer('holdfast:s1');
console.log('released record bytes', rec.length);
client.disconnect();
