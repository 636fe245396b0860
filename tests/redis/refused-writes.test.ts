/** A Redis that takes no writes for the moment: the store says why, and that nothing was executed. */
import { createLocks } from 'holdfast';
import { redisStore } from 'holdfast/redis';
import { available, type RedisServer, startRedis } from 'holdfast-test-servers';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { commandEncoder } from '../../packages/holdfast/src/stores/redis/encoder.js';
import { SCRIPT } from '../../packages/holdfast/src/stores/redis/script.js';
import { claimOf, releaseOf, say } from './store-scene.js';

/** As Redis 5 and 6 refuse a write inside a script: the error is a text, with the place in the script before it. */
const refusing = (error: string): string => `
local real = redis
local redis = { pcall = real.pcall, call = function(command, ...)
  if command == 'SET' then error('@user_script: 37: -${error}\\r\\n', 0) end
  return real.call(command, ...)
end }
`;

describe.runIf(available('redis'))('a Redis that takes no writes', () => {
  let server: RedisServer;
  let client: Redis;

  beforeAll(async () => {
    server = await startRedis({ own: true });
    client = new Redis(server.url);
  });
  afterAll(async () => {
    client?.disconnect();
    await server?.stop();
  });

  it.each([
    { setting: 'min-replicas-to-write', value: '1', before: '0', text: /too few replicas now.*NOREPLICAS/ },
    { setting: 'maxmemory', value: '1000', before: '0', text: /memory of the server is full.*OOM command/ },
  ])(
    'by $setting: nothing was executed, and the reason is told',
    async ({ setting, value, before, text }) => {
      const store = redisStore(client);
      const claim = claimOf(`by ${setting}`, 'p');
      await client.config('SET', setting, value);
      try {
        await expect(say(store, claim)).rejects.toMatchObject({
          name: 'NotExecutedError',
          retry: 'while-waiting',
        });
        const locks = createLocks(store);
        const acquired = locks.acquire(setting, { wait: 200 });
        await expect(acquired).rejects.toMatchObject({
          outcome: 'not-executed',
          message: expect.stringMatching(text),
        });
        await client.config('SET', setting, before);
        await (await locks.acquire(setting)).release();
        await locks.close();
      } finally {
        await client.config('SET', setting, before);
      }
    },
  );

  it.each(['eval', 'get', 'set', 'time'])(
    'a user without the right to %s is told so at once',
    async (missing) => {
      const rights = ['eval', 'evalsha', 'get', 'set', 'time', 'info', 'ping', 'hello', 'select'];
      const given = rights.filter((right) => right !== missing).map((right) => `+${right}`);
      await client.call('ACL', 'SETUSER', 'app', 'reset', 'on', '>secret', '~*', '&*', '-@all', ...given);
      // Otherwise the script is known already, and nobody needs `eval`.
      await client.script('FLUSH');
      const app = new Redis(server.url, { username: 'app', password: 'secret' });
      const locks = createLocks(redisStore(app));
      await expect(locks.acquire('rights', { wait: 60_000 })).rejects.toMatchObject({
        outcome: 'not-executed',
        message: expect.stringMatching(/this user may not do that/),
      });
      await locks.close();
      app.disconnect();
    },
  );

  it('Redis before 7: a replica is an error of the call, by which clients look for the master', async () => {
    const claim = claimOf('old', 'p');
    const words = commandEncoder('inbox:')([claim, releaseOf(claim)]);
    const script = `${refusing("READONLY You can\\'t write against a read only replica.")}${SCRIPT}`;
    await expect(client.eval(script, 2, 'old', 'old', ...words)).rejects.toThrow(/^READONLY You can't write/);
  });

  it('Redis before 7: other errors are told without the place in the script', async () => {
    const words = commandEncoder('inbox:')([claimOf('old', 'p')]);
    const script = `${refusing("OOM command not allowed when used memory > 'maxmemory'.".replaceAll("'", "\\'"))}${SCRIPT}`;
    const answer = await client.eval(script, 1, 'old', ...words);
    expect(answer).toEqual([expect.any(Number), [0, expect.stringMatching(/^OOM command not allowed/)]]);
  });
});
