import { Redis } from 'ioredis';
import { redisStore } from './dist/stores/redis/index.js';
import { createLocks } from './dist/index.js';
const client = new Redis(21001); const locks = createLocks(redisStore(client));
const L = async (s) => client.script('LOAD', s);
const a = await L(`local time = redis.call('TIME') local token = string.format('%d%06d', time[1], time[2]) if redis.call('SET', KEYS[1], token, 'NX', 'PX', ARGV[1]) then return token end return false`), r = await L(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`);
const min = async (i) => { const t = await client.evalsha(a, 1, 'min:' + i, 30000); await client.evalsha(r, 1, 'min:' + i, t); };
const ours = async (i) => { const l = await locks.acquire('p' + i); await l.release(); };
async function par(fn, count, width) { const t = performance.now(); let i = 0; await Promise.all(Array.from({ length: width }, async () => { while (i < count) await fn(i++ % 4000); })); return Math.round(count / (performance.now() - t) * 1000); }
const out = {};
for (let q = 0; q < 12; q++) { for (const m of [64, 32, 16, 8, 4]) { globalThis.CALL_MAX = m; (out[m] ??= []).push(await par(ours, 3000, 64)); } (out.min ??= []).push(await par(min, 3000, 64)); }
for (const k in out) { out[k].sort((x, y) => x - y); console.log(k, 'median', out[k][6], 'best', out[k].at(-1)); }
await locks.close(); client.disconnect();
