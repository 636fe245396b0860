import { Redis } from 'ioredis';

const client = new Redis(21001);
const side = new Redis(21001);
const L = async (s) => client.script('LOAD', s);
const one = await L('return 1'),
  nested = await L('return {1763000000000,{11,3,2048}}'),
  big = await L(
    'return {1763000000000,{1,1763000000000000,0,1763000000000000,1763000000000000,1763000000000,1763000000000}}',
  ),
  str = await L("return '1763000000000 11 3 2048'"),
  flat = await L('return {1763000000000,11,3,2048}');
const j = await L("local a,b,c,d = string.match(ARGV[1], '^(%w+) (%w+) (%d+) (%d+)') return 1"),
  js = await L('local x = cjson.decode(ARGV[1]) return 1');
const args = [
  'chan:',
  'claim',
  'abcdefghijklmnop12',
  '1',
  'host:123',
  '1',
  '1',
  '30000',
  '1',
  'inboxabcdefghijkl12',
  '',
];
const fns = {
  short: () => client.evalsha(one, 1, 'k', '30000'),
  args: () => client.evalsha(one, 1, 'k', ...args),
  joined: () => client.evalsha(one, 1, 'k', args.join(' ')),
  json: () => client.evalsha(js, 1, 'k', JSON.stringify(args)),
  nested: () => client.evalsha(nested, 1, 'k', '30000'),
  flat: () => client.evalsha(flat, 1, 'k', '30000'),
  big: () => client.evalsha(big, 1, 'k', '30000'),
  str: () => client.evalsha(str, 1, 'k', '30000'),
};
const cpu = async () => {
  const s = await side.info('cpu');
  const g = (k) => Number(s.match(new RegExp(`${k}:([\\d.]+)`))[1]) * 1e6;
  return g('used_cpu_user') + g('used_cpu_sys');
};
const N = 10000;
const best = {};
for (const width of [1, 64]) {
  for (let q = 0; q < 5; q++)
    for (const k in fns) {
      const s0 = await cpu(),
        c0 = process.cpuUsage(),
        t0 = performance.now();
      let i = 0;
      await Promise.all(
        Array.from({ length: width }, async () => {
          while (i < N) {
            i++;
            await fns[k]();
          }
        }),
      );
      const c = process.cpuUsage(c0);
      const s = (await cpu()) - s0;
      const b = (best[width + k] ??= [1e9, 1e9, 1e9]);
      best[width + k] = [
        Math.min(b[0], ((performance.now() - t0) * 1000) / N),
        Math.min(b[1], (c.user + c.system) / N),
        Math.min(b[2], s / N),
      ];
    }
  for (const k in fns) console.log(width, k.padEnd(6), ...best[width + k].map((x) => x.toFixed(1)));
}
client.disconnect();
side.disconnect();
