import { Redis } from 'ioredis';
import { createLocks } from './dist/index.js';
import { redisStore } from './dist/stores/redis/index.js';
import { SCRIPT } from './dist/stores/redis/script.js';

const client = new Redis(21001);
await client.script('LOAD', SCRIPT);
const MIN_A = `local t=redis.call('TIME') local v=redis.call('GET',KEYS[1]) if v then return false end
local tok=redis.call('INCR',KEYS[1]..':f') redis.call('SET',KEYS[1],ARGV[1],'PX',ARGV[2]) return {tok,t[1],t[2]}`;
const MIN_R = `if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) end return 0`;
const shaA = await client.script('LOAD', MIN_A),
  shaR = await client.script('LOAD', MIN_R);
const locks = createLocks(redisStore(client));
async function par(fn, count, width) {
  const t = performance.now();
  let i = 0;
  await Promise.all(
    Array.from({ length: width }, async () => {
      while (i < count) await fn(i++);
    }),
  );
  return Math.round((count / (performance.now() - t)) * 1000);
}
const p50 = (a) => a.sort((x, y) => x - y)[a.length >> 1];
const min = async (i) => {
  await client.evalsha(shaA, 1, 'min:' + (i % 5000), 'tok' + i, 30000);
  await client.evalsha(shaR, 1, 'min:' + (i % 5000), 'tok' + i);
};
const ours = async (i) => {
  const l = await locks.acquire('p' + (i % 5000));
  await l.release();
};
const seq = async (fn) => {
  const ts = [];
  for (let i = 0; i < 3000; i++) {
    const t = performance.now();
    await fn(i);
    ts.push(performance.now() - t);
  }
  return Math.round(p50(ts) * 1000);
};
const out = { min: [], ours: [], smin: [], sours: [] };
await seq(ours);
await seq(min);
for (let r = 0; r < 5; r++) {
  out.min.push(await par(min, 10000, 64));
  out.ours.push(await par(ours, 10000, 64));
  out.smin.push(await seq(min));
  out.sours.push(await seq(ours));
}
console.log(
  process.argv[2],
  JSON.stringify(out),
  'par',
  p50(out.ours) / p50(out.min),
  'seq',
  p50(out.sours) / p50(out.smin),
);
await locks.close();
client.disconnect();
