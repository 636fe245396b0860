import { Redis } from 'ioredis';
import { SCRIPT } from './dist/stores/redis/script.js';

const client = new Redis(21001);
const head = SCRIPT.slice(0, SCRIPT.indexOf('local function makeDecide'));
const body = (a, b = a, pre = '', n = 20000) => `${head}
${pre}
for i = 1, ${n} do
  local c = 'C ' .. i .. ' 1 1 30000 1 18 8 35 abcdefghijklmnop12host:123holdfast:inbox:inboxabcdefghijkl12'
  local r = 'R ' .. i .. ' 0 abcdefghijklmnop12'
  ${a}
  ${b}
end
return 1`;
const run = async (name, s, h = (x) => x) => {
  let b = 1e9;
  for (let i = 0; i < 7; i++) {
    await client.del('q');
    await client.config('RESETSTAT');
    await client.eval(h(s), 1, 'q');
    const m = (await client.info('commandstats')).match(/cmdstat_eval:calls=(\d+),usec=(\d+)/);
    b = Math.min(b, Number(m[2]) / 40000);
  }
  console.log(name, b.toFixed(2));
};
await run('none', body(''));
await run('quick', body("decideQuickly('q', c)", "decideQuickly('q', r)"));
const CT = "'^C (%d+) (%d+) (%d+) (%d+) (%d) (%d+) (%d+) (%d+) ()'";
await run('match', body(`local a,b,d,e,f,g,h,j,k = string.match(c, ${CT})`));
await run('match no anchor', body(`local a,b,d,e,f,g,h,j,k = string.match(c, ${CT.replace('^', '')})`));
await run('match (.*)', body(`local a,b,d = string.match(r, '^R (%d+) (%d+) (.*)$')`));
await run(
  '4 subs',
  body(`local a,b,d,e = string.sub(c,10,20), string.sub(c,20,30), string.sub(c,30,40), string.sub(c,40)`),
);
await run('format', body(`local a = string.format('11 %d %d', 12, 13)`));
await run(
  'packs',
  body(
    "local x = struct.pack('>I8I8I8I8I8I8I2c0I2c0I2c0I2c0',1,1,1,now,now,now,18,'abcdefghijklmnop12',8,'host:123',35,'holdfast:inbox:inboxabcdefghijkl12 ',0,'')",
  ),
);
await run(
  'unpack',
  body(
    "local a,b,c,d,e,f,g,h = struct.unpack('>I8I8I8I8I8I8I2c0I2c0I2c0I2c0',x)",
    undefined,
    "local x = struct.pack('>I8I8I8I8I8I8I2c0I2c0I2c0I2c0',1,1,1,now,now,now,18,'abcdefghijklmnop12',8,'host:123',35,'holdfast:inbox:inboxabcdefghijkl12 ',0,'')",
  ),
);
await run(
  'unpack mark',
  body(
    "local a,b,c = struct.unpack('>I8I8I2c0',x)",
    undefined,
    "local x = struct.pack('>I8I8I2c0',1,now,18,'abcdefghijklmnop12')",
  ),
);
await run('get', body("redis.call('GET','q')"));
await run(
  'set',
  body("redis.call('SET','q','abcdefghijklmnop12abcdefghijklmnop12abcdefghijklmnop12'..i,'PX',60000)"),
);
await run('max/floor', body('local k = math.max(5, math.floor(now / 1000) + 1, math.floor(now / 1000) + 1)'));
client.disconnect();
