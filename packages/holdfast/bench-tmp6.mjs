import { Redis } from 'ioredis';
import { SCRIPT } from './dist/stores/redis/script.js';
const client = new Redis(21001);
const head = SCRIPT.slice(0, SCRIPT.indexOf('local function makeDecide'));
const body = (inner, n = 20000) => `${head}
local args = { {'claim','abcdefghijklmnop12','1','host:123','1','1','30000','1','inboxabcdefghijkl12',''}, {'release','abcdefghijklmnop12','1','0'} }

local n = 0
for i = 1, ${n} do
  ARGV[2], ARGV[3], ARGV[4], ARGV[5] = 'claim','abcdefghijklmnop12', tostring(i), 'host:123'
  ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11] = '1','1','30000','1','inboxabcdefghijkl12',''
  ${inner}
  ARGV[2], ARGV[5] = 'release', '0'
  ${inner}
end
return 1`;
const run = async (name, s, h = (x) => x) => { let b = 1e9; for (let i = 0; i < 5; i++) { await client.del('q'); await client.config('RESETSTAT'); await client.eval(h(s), 1, 'q', 'chan:', ...Array(10).fill('')); const m = (await client.info('commandstats')).match(/cmdstat_eval:calls=(\d+),usec=(\d+)/); b = Math.min(b, Number(m[2]) / 40000); } console.log(name, b.toFixed(2)); };
await run('none', body(''));
await run('quick', body("decideQuickly('q', 2)"));
await run('quick pcall', body("pcall(decideQuickly, 'q', 2)"));
await run('noset', body("decideQuickly('q', 2)"), (s) => s.replace("redis.call('SET', key, record, 'PX', keep - now)", ''));
await run('get', body("redis.call('GET','q')"));
await run('set', body("redis.call('SET','q','abcdefghijklmnop12abcdefghijklmnop12abcdefghijklmnop12','PX',60000)"));
await run('set str', body("redis.call('SET','q','abcdefghijklmnop12abcdefghijklmnop12abcdefghijklmnop12','PX','60000')"));
await run('psetex', body("redis.call('PSETEX','q',60000,'abcdefghijklmnop12abcdefghijklmnop12abcdefghijklmnop12')"));
await run('closures', body("local a = function() return decideQuickly end"));
await run('pack', body("local x = struct.pack('>I8I8I8I8I8I8I2c0I2c0I2c0I2c0',1,1,1,now,now,now,3,'abc',3,'abc',3,'abc',0,'')"));
await run('unpack', body("local a,b,c,d,e,f,g,h = struct.unpack('>I8I8I8I8I8I8I2c0I2c0I2c0I2c0',x)").replace('local n = 0', "local x = struct.pack('>I8I8I8I8I8I8I2c0I2c0I2c0I2c0',1,1,1,now,now,now,3,'abc',3,'abc',3,'abc',0,'')"));
client.disconnect();
