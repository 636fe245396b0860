import { describe, expect, it } from 'vitest';
import { type Store, UnsupportedError } from '../../src/protocol/index.js';
import { explain } from '../../src/stores/clients/errors.js';
import { connectedStore, importError, loadFirst } from '../../src/stores/clients/opened-client.js';
import { memoryStore } from '../../src/stores/memory.js';

describe('a client package', () => {
  /** The import of `name` fails because `absent` is not there. */
  const missing =
    (name: string, absent = name) =>
    async (): Promise<never> => {
      const error = new Error(`Cannot find package '${absent}' imported from here`);
      throw importError(name, Object.assign(error, { code: 'ERR_MODULE_NOT_FOUND' }));
    };

  it('that is not installed leaves it to the next', async () => {
    const found = await loadFirst('Redis', [
      { name: 'ioredis', load: missing('ioredis') },
      { name: 'redis', load: async () => 'node-redis' },
    ]);
    expect(found).toBe('node-redis');
  });

  it('is missed in one line with the command that installs it', async () => {
    const none = loadFirst('Redis', [
      { name: 'ioredis', load: missing('ioredis') },
      { name: 'redis', load: missing('redis') },
    ]);
    await expect(none).rejects.toThrow(UnsupportedError);
    await expect(none).rejects.toThrow(
      /^A client package for Redis is needed, and none is installed: npm install ioredis \(or redis\)\.$/,
    );
  });

  it('that is installed but broken is not passed over', async () => {
    const broken = loadFirst('Redis', [
      { name: 'ioredis', load: missing('ioredis', 'debug') },
      { name: 'redis', load: async () => 'node-redis' },
    ]);
    await expect(broken).rejects.toThrow(/'debug'/);
  });
});

describe('what a client says, in words', () => {
  const coded = (code: string, message = 'as the client says it') =>
    Object.assign(new Error(message), { code });
  const named = (name: string) => Object.assign(new Error('as the client says it'), { name });
  const ofNodes = (lastNodeError: Error) =>
    Object.assign(new Error('Failed to refresh slots cache.'), { lastNodeError });
  const where = 'db.internal:5432';

  it.each([
    [coded('ECONNREFUSED'), null, /^nothing listens at db\.internal:5432: is the server running/],
    [
      new AggregateError([coded('ECONNREFUSED', 'connect ECONNREFUSED ::1')]),
      null,
      /^nothing listens.*ECONNREFUSED ::1/,
    ],
    [coded('ENOTFOUND'), null, /host name of db\.internal:5432 is not known/],
    [new Error('connect ETIMEDOUT'), null, /does not answer/],
    [new Error('timeout exceeded when trying to connect'), null, /does not answer/],
    [new Error('WRONGPASS invalid username-password pair'), null, /refuses this user name and password/],
    [new Error('NOAUTH Authentication required.'), null, /refuses this user name and password/],
    [coded('28P01'), null, /refuses this user name and password/],
    [new Error('Command timed out'), null, /is there but does not answer/],
    [new Error('Query read timeout'), null, /is there but does not answer/],
    [
      new Error('The client is offline'),
      new Error('it accepted the connection but does not answer'),
      /is there but does not answer/,
    ],
    [
      ofNodes(new Error('Connection is closed.')),
      null,
      /^no node answers at .*refresh slots cache\. Connection/,
    ],
    [ofNodes(new Error('ERR This instance has cluster support disabled')), null, /is not a Redis Cluster/],
    [ofNodes(new Error('WRONGPASS no')), null, /refuses this user name and password/],
    [
      new Error("READONLY You can't write against a read only replica."),
      null,
      /is a replica, which cannot store locks/,
    ],
    [coded('25006'), null, /is read-only and cannot store locks: it is a replica, or is set so/],
    [coded('3D000'), null, /database does not exist/],
    [named('CredentialsProviderError'), null, /^no AWS credentials were found: set AWS_ACCESS_KEY_ID/],
    [named('ExpiredTokenException'), null, /^the AWS credentials have expired/],
    [named('ThrottlingException'), null, /is throttling/],
    [new Error('Region is missing'), null, /^no AWS region is known/],
    [
      coded('ETIMEDOUT', 'a request has exceeded the configured 3000 ms requestTimeout.'),
      null,
      /is there but does not answer/,
    ],
    [named('AuthorizationError'), null, /refuses this user name and password/],
    [new Error('NATS did not answer "$JS.API.INFO": timeout.'), null, /is there but does not answer/],
    [
      new Error('NATS did not answer "$JS.API.INFO": timeout.'),
      coded('ECONNRESET'),
      /^the connection to .* broke/,
    ],
    [new Error("NOPERM this user has no permissions to run the 'evalsha' command"), null, /may not do that/],
    [coded('42501'), null, /may not do that/],
    [coded('DEPTH_ZERO_SELF_SIGNED_CERT'), null, /certificate of .* is not trusted/],
    [new Error('The server does not support SSL connections'), null, /does not speak TLS/],
    [
      new Error("Stream isn't writeable and enableOfflineQueue options is false"),
      coded('ECONNREFUSED'),
      /^nothing listens/,
    ],
    [new Error('The client is offline'), new Error('WRONGPASS no'), /refuses this user name/],
    [new Error('something new'), coded('ECONNREFUSED'), /^db\.internal:5432: something new$/],
    ['not even an error', null, /^db\.internal:5432: not even an error$/],
  ])('%s, %s', (error, trouble, words) => {
    const explained = explain(error, trouble, where);
    expect(explained.message).toMatch(words);
    expect(explained.cause).toBe(error);
  });
});

describe('a store with the clients that were made for it', () => {
  const memory = memoryStore();
  const connection = { where: 'db.internal:5432', error: () => null, end: async () => undefined };

  it('passes on wake-ups, and whether they arrive', async () => {
    const heard: unknown[] = [];
    const store = connectedStore(
      {
        ...memory,
        async listen(inbox, wake, hears) {
          heard.push(inbox);
          wake('job', 'turn');
          hears?.(false);
          return async () => undefined;
        },
      },
      connection,
    );
    await store.listen?.(
      'mine',
      (key, why) => heard.push([key, why]),
      (hearing) => heard.push(hearing),
    );
    expect(heard).toEqual(['mine', ['job', 'turn'], false]);
  });

  it('says in words what failed, and leaves refusals as they are', async () => {
    const failing = (error: Error): Store =>
      connectedStore(
        { ...memory, read: () => Promise.reject(error), handOff: () => Promise.reject(error) },
        connection,
      );
    const refused = Object.assign(new Error('no'), { code: 'ECONNREFUSED' });
    await expect(failing(refused).read('job')).rejects.toThrow(/^nothing listens at db\.internal:5432/);
    const hold = { process: 'p', number: 1 };
    await expect(failing(refused).handOff?.(hold)).rejects.toThrow(/^nothing listens/);
    const refusal = new UnsupportedError('a reason');
    await expect(failing(refusal).read('job')).rejects.toBe(refusal);
  });
});
