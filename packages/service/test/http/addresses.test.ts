/** Where requests come from: connections by address, proxies, and connections on which nothing is asked. */
import { connect, type Socket } from 'node:net';
import { createLocks } from 'holdfast';
import { httpStore } from 'holdfast/http';
import { afterEach, describe, expect, it } from 'vitest';
import { createAuth } from '../../src/auth/index.js';
import { proxiesOf } from '../../src/http/proxies.js';
import { bearer, keyFile } from '../auth/issuer.js';
import { atTheEnd, clearScene, pause, type Stage, stage, until } from '../scene.js';

afterEach(clearScene);

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
  const ask = async (): Promise<string> => {
    heard = '';
    socket.write('GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n');
    const answered = until(() => heard.startsWith('HTTP/1.1 200'), 'it is answered').then(() => 'answered');
    return await Promise.race([answered, ended]);
  };
  return { socket, ask };
}

type Ask = () => Promise<string>;

describe('connections of one address', () => {
  it('are no more than it may have; other addresses have their own', async () => {
    const scene = await stage({ limits: { addressConnections: 2 } });
    const first = dial(scene);
    expect([await first.ask(), await dial(scene).ask()]).toEqual(['answered', 'answered']);
    expect([await dial(scene).ask(), await dial(scene).ask()]).toEqual(['closed', 'closed']);
    expect(await dial(scene, '127.0.0.2').ask()).toBe('answered');
    const warned = scene.lines.filter((line) => line.includes('too many connections'));
    expect(warned).toHaveLength(1);
    first.socket.destroy();
    await until(async () => (await dial(scene).ask()) === 'answered', 'there is room again');
    expect(await dial(scene).ask()).toBe('closed');
  });

  it('are not counted for a proxy that is trusted', async () => {
    const scene = await stage({ limits: { addressConnections: 1 }, trustProxy: ['127.0.0.2'] });
    const asked = [dial(scene, '127.0.0.2'), dial(scene, '127.0.0.2'), dial(scene), dial(scene)];
    const answers: string[] = [];
    for (const { ask } of asked) answers.push(await ask());
    expect(answers).toEqual(['answered', 'answered', 'answered', 'closed']);
  });
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
    const { call } = await stage({ auth: createAuth({ keys: path }), trustProxy });
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
      expect(() => proxiesOf([text])).toThrow(/is no proxy that can be trusted/);
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
