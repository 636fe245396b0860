import { available, type RedisServer, startRedis } from 'holdfast-test-servers';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Evaluate, redisGuard } from '../../packages/holdfast/src/fences/index.js';
import { InvalidArgumentError, LeaseLostError } from '../../packages/holdfast/src/protocol/index.js';

const guard = redisGuard("return redis.call('INCRBY', KEYS[1], ARGV[1])");

describe.runIf(available('redis'))('the guard for Redis', () => {
  let server: RedisServer;
  let client: Redis;
  const evaluate: Evaluate = (script, keys, args) => client.eval(script, keys.length, ...keys, ...args);

  beforeAll(async () => {
    server = await startRedis();
    client = new Redis(server.url);
  });

  afterAll(async () => {
    client.disconnect();
    await server.stop();
  });

  it('F1: lets a token write as often as it likes, and refuses a lower one, which writes nothing', async () => {
    const add = (token: number, amount: number) =>
      guard.write(evaluate, { fence: 'ann:fence', token, keys: ['ann'], args: [amount] });
    expect(await add(1_794_781_702_310_001, 10)).toBe(10);
    expect(await add(1_794_781_702_310_001, 10)).toBe(20);
    expect(await add(1_794_781_702_310_002, 1)).toBe(21);
    await expect(add(1_794_781_702_310_001, 100)).rejects.toThrow(LeaseLostError);
    expect(await client.get('ann')).toBe('21');
    expect(await client.get('ann:fence')).toBe('1794781702310002');
  });

  it('takes as many keys and arguments as Redis does', async () => {
    const count = redisGuard('return { #KEYS, #ARGV, ARGV[#ARGV] }');
    const many = Array.from({ length: 20_000 }, (_, at) => `${at}`);
    const written = await count.write(evaluate, { fence: 'many:fence', token: 1, keys: many, args: many });
    expect(written).toEqual([20_000, 20_000, '19999']);
  });

  it('works with node-redis too', async () => {
    const other = createClient({ url: server.url });
    await other.connect();
    const run: Evaluate = (script, keys, args) => other.eval(script, { keys, arguments: args });
    const write = { fence: 'bob:fence', keys: ['bob'], args: [5] };
    expect(await guard.write(run, { ...write, token: 7 })).toBe(5);
    await expect(guard.write(run, { ...write, token: 6 })).rejects.toThrow(/a later holder has written/);
    other.destroy();
  });

  it('passes on what else goes wrong, as it is', async () => {
    await client.set('word', 'not a number');
    const write = guard.write(evaluate, { fence: 'word:fence', token: 1, keys: ['word'], args: [1] });
    await expect(write).rejects.toThrow(/not an integer/);
    const fenced = guard.write(evaluate, { fence: 'word', token: 1, keys: ['other'], args: [1] });
    await expect(fenced).rejects.toThrow(/invalid token/);
  });

  it('refuses a call that cannot be meant', async () => {
    expect(() => redisGuard(' ')).toThrow(InvalidArgumentError);
    await expect(guard.write(evaluate, { fence: 'f', token: 0 })).rejects.toThrow(InvalidArgumentError);
    await expect(guard.write(evaluate, { fence: '', token: 1 })).rejects.toThrow(InvalidArgumentError);
    const args = [undefined] as unknown as string[];
    await expect(guard.write(evaluate, { fence: 'f', token: 1, args })).rejects.toThrow(InvalidArgumentError);
    expect(await client.exists('f')).toBe(0);
  });
});
