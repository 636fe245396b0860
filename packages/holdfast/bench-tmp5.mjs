import { Redis } from 'ioredis';
import { createLocks } from './dist/index.js';
import { redisStore } from './dist/stores/redis/index.js';
import { SCRIPT } from './dist/stores/redis/script.js';

const client = new Redis(21001);
const MIN_A = `local t=redis.call('TIME') local v=redis.call('GET',KEYS[1]) if v then return false end
local tok=redis.call('INCR',KEYS[1]..':f') redis.call('SET',KEYS[1],ARGV[1],'PX',ARGV[2]) return {tok,t[1],t[2]}`;
const MIN_R = `if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) end return 0`;
const MIN_A2 = MIN_A.replace(
  'return {tok,t[1],t[2]}',
  'return {1763000000000,{1,1763000000000000,0,1763000000000000,1763000000000000,1763000000000,1763000000000}}',
);
const MIN_R2 = MIN_R.replace(
  "then return redis.call('DEL',KEYS[1]) end return 0",
  "then redis.call('DEL',KEYS[1]) end return {1763000000000,{1,1763000000000000,0,1}}",
);
const L = async (s) => client.script('LOAD', s);
const [a, r, a2, r2] = [await L(MIN_A), await L(MIN_R), await L(MIN_A2), await L(MIN_R2)];
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
const fns = {
  min: async (i) => {
    await client.evalsha(a, 1, 'min:' + i, 'tok' + i, 30000);
    await client.evalsha(r, 1, 'min:' + i, 'tok' + i);
  },
  minArgs: async (i) => {
    await client.evalsha(
      a,
      1,
      'min:' + i,
      'tok' + i,
      '30000',
      'abcdefghijklmnop12',
      '12',
      'host:123',
      '1',
      '1',
      '30000',
      '1',
      'inboxabcdefghijkl12',
      '',
    );
    await client.evalsha(r, 1, 'min:' + i, 'tok' + i, 'release', 'abcdefghijklmnop12', '0');
  },
  minArgsReply: async (i) => {
    await client.evalsha(
      a2,
      1,
      'min:' + i,
      'tok' + i,
      '30000',
      'abcdefghijklmnop12',
      '12',
      'host:123',
      '1',
      '1',
      '30000',
      '1',
      'inboxabcdefghijkl12',
      '',
    );
    await client.evalsha(r2, 1, 'min:' + i, 'tok' + i, 'release', 'abcdefghijklmnop12', '0');
  },
  raw: async (i) => {
    ++n;
    await client.evalsha(
      sha,
      1,
      'k' + i,
      `C ${n} 1 1 30000 1 18 8 35 abcdefghijklmnop12host:123holdfast:inbox:inboxabcdefghijkl12`,
    );
    await client.evalsha(sha, 1, 'k' + i, `R ${n} 0 abcdefghijklmnop12`);
  },
  store: async (i) => {
    const c = claim('s' + i);
    await store.apply([c])[0];
    await store.apply([{ kind: 'release', key: c.key, hold: c.hold, minHoldMs: 0 }])[0];
  },
  locks: async (i) => {
    const l = await locks.acquire('p' + i);
    await l.release();
  },
};
const p50 = (x) => x.sort((p, q) => p - q)[x.length >> 1];
const seq = async (fn) => {
  const ts = [];
  for (let i = 0; i < 1000; i++) {
    const t = performance.now();
    await fn(i % 500);
    ts.push(performance.now() - t);
  }
  return Math.round(p50(ts) * 1000);
};
const res = {};
for (const k in fns) {
  await seq(fns[k]);
  res[k] = [];
}
for (let q = 0; q < 12; q++) for (const k in fns) res[k].push(await seq(fns[k]));
for (const k in fns) console.log(k, Math.min(...res[k]), p50(res[k]));
await locks.close();
client.disconnect();
