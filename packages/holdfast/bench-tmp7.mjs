import { Redis } from 'ioredis';
import { createLocks } from './dist/index.js';
import { redisStore } from './dist/stores/redis/index.js';
import { SCRIPT } from './dist/stores/redis/script.js';

const client = new Redis(21001);
const side = new Redis(21001);
const TAKE = `
local time = redis.call('TIME')
local token = string.format('%d%06d', time[1], time[2])
if redis.call('SET', KEYS[1], token, 'NX', 'PX', ARGV[1]) then return token end
return false`;
const GIVE = `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`;
const L = async (s) => client.script('LOAD', s);
const [a, r] = [await L(TAKE), await L(GIVE)];
const sha = await L(SCRIPT);
const store = redisStore(client);
const locks = createLocks(redisStore(client));
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
const fns = {
  min: async (i) => {
    const t = await client.evalsha(a, 1, 'min:' + i, 30000);
    await client.evalsha(r, 1, 'min:' + i, t);
  },
  raw: async (i) => {
    const m = ++n;
    await client.evalsha(
      sha,
      1,
      'k' + i,
      `C ${m} 1 1 30000 1 18 8 35 abcdefghijklmnop12host:123holdfast:inbox:inboxabcdefghijkl12`,
    );
    await client.evalsha(sha, 1, 'k' + i, `R ${m} 0 abcdefghijklmnop12`);
  },
  store: async (i) => {
    const c = claim('s' + i);
    await send(c);
    await send({ kind: 'release', key: c.key, hold: c.hold, minHoldMs: 0 });
  },
  locks: async (i) => {
    const l = await locks.acquire('p' + i);
    await l.release();
  },
};
const cpu = async () => {
  const s = await side.info('cpu');
  const g = (k) => Number(s.match(new RegExp(`${k}:([\\d.]+)`))[1]) * 1e6;
  return g('used_cpu_user') + g('used_cpu_sys');
};
const N = 6000;
for (const width of [1, 64])
  for (const k in fns) {
    let best = [1e9, 1e9, 1e9];
    for (let q = 0; q < 4; q++) {
      const s0 = await cpu(),
        c0 = process.cpuUsage(),
        t0 = performance.now();
      let i = 0;
      await Promise.all(
        Array.from({ length: width }, async () => {
          while (i < N) await fns[k](i++ % 1000);
        }),
      );
      const t = ((performance.now() - t0) * 1000) / N;
      const c = process.cpuUsage(c0);
      const s = (await cpu()) - s0;
      best = [Math.min(best[0], t), Math.min(best[1], (c.user + c.system) / N), Math.min(best[2], s / N)];
    }
    console.log(
      width,
      k.padEnd(6),
      'wall',
      best[0].toFixed(1),
      'client',
      best[1].toFixed(1),
      'server',
      best[2].toFixed(1),
    );
  }
await locks.close();
client.disconnect();
side.disconnect();
