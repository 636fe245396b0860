import { Redis } from 'ioredis';
import { SCRIPT } from './dist/stores/redis/script.js';

const client = new Redis(21001);
const stat = async () => {
  const s = (await client.info('commandstats')).match(/cmdstat_evalsha:calls=(\d+),usec=(\d+)/);
  return Number(s[2]) / Number(s[1]);
};
const V = 'x'.repeat(90);
const scripts = {
  empty: 'return 1',
  time: "local time = redis.call('TIME') return {1}",
  timegetset: `local time = redis.call('TIME') local v = redis.call('GET', KEYS[1]) redis.call('SET', KEYS[1], '${V}', 'PX', 60000) return {1,{1,2,3,4,5}}`,
  packed: `local time = redis.call('TIME') local v = redis.call('GET', KEYS[1]) local r = v and cmsgpack.unpack(v) or {1,2,3,{},{},{},{}} r[4]={{'abcdefghijklmnop12',1,'host:123',1,1,1700000000000,'inboxabcdefghijkl12',1700000000000000,170000000000,false}} redis.call('SET', KEYS[1], cmsgpack.pack(r), 'PX', 60000) return {1,{1,2,3,4,5}}`,
  struct: `local time = redis.call('TIME') local v = redis.call('GET', KEYS[1]) local a,b,c if v then a,b,c = struct.unpack('>BI8I8I8sss', v) end redis.call('SET', KEYS[1], struct.pack('>BI8I8I8I8I4I4I4sss',1,1700000000000,1700000000000,1700000000000,1700000000000,1,1,1,'abcdefghijklmnop12','host:123','inboxabcdefghijkl12'), 'PX', 60000) return {1,{1,2,3,4,5}}`,
  ours: SCRIPT,
};
const shas = {};
for (const k in scripts) shas[k] = await client.script('LOAD', scripts[k]);
const best = {};
for (let r = 0; r < 6; r++)
  for (const k in scripts) {
    await client.flushdb();
    await client.config('RESETSTAT');
    if (k === 'ours') {
      for (let i = 0; i < 1500; i++) {
        await client.evalsha(
          shas[k],
          1,
          'k' + (i % 50),
          `C ${i + 1} 1 1 30000 1 18 8 35 abcdefghijklmnop12host:123holdfast:inbox:inboxabcdefghijkl12`,
        );
        await client.evalsha(shas[k], 1, 'k' + (i % 50), `R ${i + 1} 0 abcdefghijklmnop12`);
      }
    } else
      for (let i = 0; i < 3000; i++)
        await client.evalsha(
          shas[k],
          1,
          'k' + (i % 50),
          'chan:',
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
    best[k] = Math.min(best[k] ?? 1e9, await stat());
  }
console.log(best);
client.disconnect();
