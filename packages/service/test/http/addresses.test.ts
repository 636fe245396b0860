/** Where requests come from: connections by address, proxies, and connections on which nothing is asked. */
import { connect, type Socket } from 'node:net';
import { createLocks } from 'holdfast';
import { httpStore } from 'holdfast/http';
import { afterEach, describe, expect, it } from 'vitest';
import { createAuth } from '../../src/auth/index.js';
import { proxiesOf } from '../../src/http/addresses.js';
import { bearer, keyFile } from '../auth/issuer.js';
import { atTheEnd, clearScene, open, pause, type Stage, stage, until } from '../scene.js';

afterEach(clearScene);

const HEALTH = 'GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n';

/** An open connection, from an address of this machine. */
function dial({ url }: Stage, localAddress = '127.0.0.1'): { readonly socket: Socket; readonly ask: Ask } {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', localAddress });
  atTheEnd(() => socket.destroy());
  let heard = '';
  socket.on('data', (chunk) => {
    heard += String(chunk);
  });
  const ended = new Promise<string>((resolve) => {
    // However the service hangs up.
    socket.on('error', () => undefined).on('close', () => resolve('closed'));
  });
  const ask = async (text = HEALTH): Promise<string> => {
    heard = '';
    socket.write(text);
    const answered = until(() => heard.startsWith('HTTP/1.1 200'), 'it is answered').then(() => 'answered');
    return await Promise.race([answered, ended]);
  };
  return { socket, ask };
}

type Ask = (text?: string) => Promise<string>;

describe('connections of one address', () => {
  it('that say nothing are closed when new ones come, the oldest first; a new one is always answered', async () => {
    const scene = await stage({ limits: { addressConnections: 2 } });
    const silent = Array.from({ length: 6 }, () => dial(scene));
    expect(await dial(scene, '127.0.0.2').ask()).toBe('answered');
    await until(async () => {
      expect(await dial(scene).ask()).toBe('answered');
      return silent.every(({ socket }) => socket.closed);
    }, 'the silent ones are closed');
    expect(scene.lines.filter((line) => line.includes('many idle connections'))).toHaveLength(1);
  });

  it('are not counted for a proxy that is trusted', async () => {
    const scene = await stage({ limits: { addressConnections: 1 }, trustProxy: ['127.0.0.2'] });
    const proxied = [dial(scene, '127.0.0.2'), dial(scene, '127.0.0.2'), dial(scene, '127.0.0.2')];
    for (const { ask } of proxied) expect(await ask()).toBe('answered');
    for (const { ask } of proxied) expect(await ask()).toBe('answered');
    const other = dial(scene);
    await until(async () => {
      expect(await dial(scene).ask()).toBe('answered');
      return other.socket.closed;
    }, 'the oldest of another address is closed');
    for (const { socket } of proxied) expect(socket.closed).toBe(false);
  });

  it.each([
    ['without auth', false],
    ['with a key', true],
  ])('all taken by waiters, %s: renewals, releases and health are answered', async (_name, isWithAuth) => {
    const { path, keys } = await keyFile({ ada: ['lock:own'] });
    const auth = isWithAuth ? { auth: createAuth({ apiKeys: path }) } : {};
    const scene = await stage({ limits: { addressConnections: 4 }, ...auth });
    const as = isWithAuth ? bearer(keys.ada) : {};
    const { body } = await scene.post('/v2/locks/own/a/acquire', { ttl: '30s' }, as);
    const waiting = Array.from({ length: 8 }, () =>
      open(scene.url, '/v2/locks/own/a/acquire', { ttl: '30s', wait: '20s' }, as),
    );
    await until(async () => {
      const { body: lock } = await scene.call('GET', '/v2/locks/own/a', undefined, as);
      return lock.waiting === waiting.length;
    }, 'all wait');
    // Each on a connection of its own.
    for (let count = 0; count < 3; count += 1) {
      const renewal = open(scene.url, '/v2/locks/own/a/renew', { hold: body.hold, ttl: '30s' }, as);
      expect((await renewal.answer).status).toBe(200);
      expect(await dial(scene).ask()).toBe('answered');
    }
    const release = open(scene.url, '/v2/locks/own/a/release', { hold: body.hold }, as);
    expect((await release.answer).body.held).toBe(true);
    const { status } = await Promise.race(waiting.map(({ answer }) => answer));
    expect(status).toBe(200);
    for (const { leave } of waiting) leave();
  });

  it('that show who they are are not closed by those that do not', async () => {
    const { path, keys } = await keyFile({ ada: ['read:own'] });
    const scene = await stage({ limits: { addressConnections: 2 }, auth: createAuth({ apiKeys: path }) });
    const known = dial(scene);
    const look = `GET /v2/locks/own/a HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${keys.ada}\r\n\r\n`;
    expect(await known.ask(look)).toBe('answered');
    const silent = Array.from({ length: 6 }, () => dial(scene));
    await until(() => {
      dial(scene);
      return silent.every(({ socket }) => socket.closed);
    }, 'the silent ones are closed');
    expect(await known.ask(look)).toBe('answered');
  });
});

it('one connection more than the service may have closes an idle one, and is refused only when none is idle', async () => {
  const scene = await stage({ limits: { connections: 3 } });
  const waiting = [];
  for (const key of ['own/a', 'own/b', 'own/c']) {
    const { hold } = await scene.acquire(key);
    waiting.push(open(scene.url, `/v2/locks/${key}/acquire`, { ttl: '30s', wait: '20s' }));
    await until(async () => (await scene.store.read(key))?.waiters.length === 1, 'it waits');
    if (waiting.length === 3) break;
    expect(await dial(scene).ask()).toBe('answered');
    const renewal = open(scene.url, `/v2/locks/${key}/renew`, { hold, ttl: '30s' });
    expect((await renewal.answer).status).toBe(200);
  }
  expect(await dial(scene).ask()).toBe('closed');
  for (const { leave } of waiting) leave();
});

describe('a connection on which nothing is asked', () => {
  it('is closed after a while', async () => {
    const scene = await stage({ limits: { idleMs: 200 } });
    const { socket, ask } = dial(scene);
    expect(await ask()).toBe('answered');
    await until(() => socket.closed, 'it is closed');
  });

  it('that is closed is no loss to the library: what it holds stays held', async () => {
    const { url } = await stage({ limits: { idleMs: 2_000 } });
    const locks = createLocks(httpStore({ url }), { namespace: 'a' });
    atTheEnd(() => locks.close({ drain: 0 }));
    const lost: unknown[] = [];
    locks.on('lost', (event) => lost.push(event));
    const lease = await locks.acquire('b', { ttl: '60s' });
    // Before and after the moments at which the client, and the service, close what is idle.
    for (const ms of [900, 1_100, 1_950, 2_100]) {
      await pause(ms);
      expect((await locks.inspect('b'))?.holders).toHaveLength(1);
    }
    lease.assertHeld();
    await lease.release();
    expect(lost).toEqual([]);
  });
});

describe('x-forwarded-for', () => {
  const wrong = (count: number): string => `hfk_${String(count).padStart(12, '0')}_${'A'.repeat(44)}`;

  async function guessing(trustProxy: readonly string[]) {
    const { path, keys } = await keyFile({ ada: ['read:*'] });
    const { call } = await stage({ auth: createAuth({ apiKeys: path }), trustProxy });
    const statusFrom = async (forwarded: string, text: string): Promise<number> => {
      const headers = { ...bearer(text), 'x-forwarded-for': forwarded };
      return (await call('GET', '/v2/locks/own/a', undefined, headers)).status;
    };
    for (let count = 0; count < 15; count += 1) await statusFrom('192.0.2.1', wrong(count));
    return { statusFrom, good: keys.ada };
  }

  it('of a trusted proxy says who guesses: nobody else behind it is slowed down', async () => {
    const { statusFrom } = await guessing(['127.0.0.0/8']);
    expect(await statusFrom('192.0.2.1', wrong(20))).toBe(429);
    expect(await statusFrom('192.0.2.2', wrong(20))).toBe(401);
    // What stands before what the proxy saw was said by the client.
    expect(await statusFrom('192.0.2.3, 192.0.2.1', wrong(20))).toBe(429);
  });

  it('of anybody else is not heard', async () => {
    for (const trustProxy of [[], ['192.0.2.1', '10.0.0.0/8']]) {
      const { statusFrom, good } = await guessing(trustProxy);
      expect(await statusFrom('192.0.2.2', wrong(20))).toBe(429);
      expect(await statusFrom('192.0.2.2', good)).toBe(200);
    }
  });

  it('comes from addresses and networks that are named, whatever way they are written', () => {
    const isProxy = proxiesOf(['10.0.0.0/8', '192.0.2.1', '2001:db8::/32', '::1']);
    for (const address of ['10.1.2.3', '::ffff:10.1.2.3', '192.0.2.1', '2001:db8:1::9', '::1']) {
      expect([address, isProxy(address)]).toEqual([address, true]);
    }
    for (const address of [
      '11.1.2.3',
      '192.0.2.2',
      '2001:db9::1',
      'fe80::1%eth0',
      'unknown',
      '',
      undefined,
    ]) {
      expect([address, isProxy(address)]).toEqual([address, false]);
    }
  });

  it.each(['true', '*', '', '0.0.0.0/0', '::/0', '10.0.0.0/33', '10.0.0', 'proxy.example', 'loopback'])(
    'cannot be trusted from "%s"',
    (text) => {
      expect(() => proxiesOf([text])).toThrow(/is not a proxy/);
    },
  );
});

it('without auth, a name that a proxy is said to have seen is no name of this machine', async () => {
  const { url } = await stage({ trustProxy: ['127.0.0.1'] });
  const { port } = new URL(url);
  const socket = connect(Number(port), '127.0.0.1');
  atTheEnd(() => socket.destroy());
  const answer = new Promise<string>((resolve) => socket.once('data', (chunk) => resolve(String(chunk))));
  socket.write('GET /v2/locks HTTP/1.1\r\nhost: evil.example\r\nx-forwarded-host: localhost\r\n\r\n');
  expect(await answer).toMatch(/^HTTP\/1.1 403/);
});
