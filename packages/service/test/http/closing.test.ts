import dns from 'node:dns';
import { Agent, request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { memoryStore } from 'holdfast/memory';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createService } from '../../src/index.js';
import { atTheEnd, clearScene, listen, open, STORES, stage, until } from '../scene.js';

afterEach(clearScene);

const ACQUIRE = '/v2/locks/a/b/acquire';

describe('closing', () => {
  for (const [name, newStore] of Object.entries(STORES)) {
    it(`on ${name}: whoever waits gets 503 closing, and nothing of them stays at the store`, async () => {
      const scene = await stage({ store: newStore() });
      await scene.acquire('a/b');
      const waiters = Array.from(
        { length: 5 },
        () => open(scene.url, ACQUIRE, { ttl: '30s', wait: '20s' }).answer,
      );
      await until(async () => (await scene.get('/v2/locks/a/b')).body.waiting === 5, 'all wait');
      await scene.service.close();
      for (const { status, body, headers } of await Promise.all(waiters)) {
        expect([status, body.code]).toEqual([503, 'closing']);
        expect(headers.connection).toBe('close');
      }
      const left = await scene.store.read('a/b');
      expect(left?.waiters).toEqual([]);
      expect(left?.holders).toHaveLength(1);
    });
  }

  it('asks the store nothing for those who stand behind others', async () => {
    const scene = await stage();
    await scene.acquire('a/b');
    const waiters = Array.from({ length: 50 }, (_, index) => {
      return open(scene.url, ACQUIRE, { ttl: '30s', wait: '20s', owner: `waiter ${index}` }).answer;
    });
    await until(async () => (await scene.get('/v2/locks/a/b')).body.waiting === 50, 'all wait');
    let commands = 0;
    scene.service.events.on('store', (told) => {
      commands += told.commands;
    });
    await scene.service.close();
    await Promise.all(waiters);
    // The one in front takes its place back; a poll of it may have been on its way.
    expect(commands).toBeLessThanOrEqual(2);
  });

  it('answers what is in flight', async () => {
    const memory = STORES.memory?.();
    if (!memory) throw new Error('There is no memory store.');
    let arrived = (): void => undefined;
    let goOn = (): void => undefined;
    const inFlight = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const slow = {
      ...memory,
      async read(key: string) {
        arrived();
        await held;
        return memory.read(key);
      },
    };
    const scene = await stage({ store: slow });
    const answer = scene.get('/v2/locks/a/b');
    await inFlight;
    const closed = scene.service.close();
    goOn();
    const { status, headers } = await answer;
    expect(status).toBe(200);
    await closed;
    // Otherwise closing waits for the idle connection of a client that keeps it open, until it is cut off.
    expect(headers.get('connection')).toBe('close');
    expect(scene.lines.join('')).not.toContain('cut off');
  });

  it('a request on an open connection meanwhile gets 503 closing too', async () => {
    const memory = STORES.memory?.();
    if (!memory) throw new Error('There is no memory store.');
    const scene = await stage({ store: memory, limits: { closeMs: 2_000 } });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    atTheEnd(() => agent.destroy());
    const ask = (path: string): Promise<{ status: number; text: string }> =>
      new Promise((resolve, reject) => {
        const request = httpRequest(scene.url + path, { agent }, (response) => {
          let text = '';
          response.on('data', (chunk) => {
            text += String(chunk);
          });
          response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
        });
        request.on('error', reject);
        request.end();
      });
    expect((await ask('/v2/locks/a/b')).status).toBe(200);
    // Node ends idle connections when it closes: it has to arrive in the very moment.
    const closing = scene.service.close();
    const late = await ask('/v2/locks/a/b').catch((error: unknown) => ({ status: 0, text: String(error) }));
    await closing;
    if (late.status !== 0) expect([late.status, late.text.includes('"code":"closing"')]).toEqual([503, true]);
  });

  it('ends streams of events', async () => {
    const scene = await stage();
    const stream = await listen(scene.url, '/v2/events');
    await until(() => stream.events.length > 0, 'it is ready');
    await scene.service.close();
    await stream.closed;
  });

  it('a store whose wake-ups cannot be ended now is no reason to stay open', async () => {
    const memory = memoryStore();
    const listen = async () => () => Promise.reject(new Error('The line is cut.'));
    const scene = await stage({ store: { ...memory, listen } });
    await scene.acquire('a/b');
    const waiter = open(scene.url, ACQUIRE, { ttl: '30s', wait: '20s' });
    await until(async () => (await scene.get('/v2/locks/a/b')).body.waiting === 1, 'it waits');
    await scene.service.close();
    expect((await waiter.answer).status).toBe(503);
    expect(scene.service.app.server.listening).toBe(false);
  });

  it('does not wait for connections on which nothing was asked', async () => {
    const scene = await stage();
    const socket = connect(Number(new URL(scene.url).port), '127.0.0.1');
    const ended = new Promise((resolve) => socket.on('error', () => undefined).on('close', resolve));
    await new Promise((resolve) => scene.service.app.server.once('connection', resolve));
    await scene.service.close();
    await ended;
    expect(scene.lines.join('')).not.toContain('cut off');
  });

  it('does not wait for ever for what is stuck', async () => {
    const memory = STORES.memory?.();
    if (!memory) throw new Error('There is no memory store.');
    const stuck = { ...memory, read: () => new Promise<never>(() => undefined) };
    const scene = await stage({ store: stuck, limits: { closeMs: 300 } });
    const answer = Promise.allSettled([scene.get('/v2/locks/a/b')]);
    await until(() => scene.service.app.server.connections !== 0, 'it is connected');
    const sinceMs = Date.now();
    await scene.service.close();
    expect(Date.now() - sinceMs).toBeLessThan(9_000);
    await answer;
  });

  it('on localhost, waits for all that was asked: there is no second server for ::1', async () => {
    const both = [
      { address: '127.0.0.1', family: 4 },
      { address: '::1', family: 6 },
    ];
    const real = dns.lookup as (...args: unknown[]) => unknown;
    const found = vi.spyOn(dns, 'lookup').mockImplementation(((...args: unknown[]) => {
      const [host, options, done] = args as [string, { all?: boolean }, (...found: unknown[]) => void];
      return host === 'localhost' && options.all ? done(null, both) : real(...args);
    }) as unknown as typeof dns.lookup);
    atTheEnd(() => found.mockRestore());
    const store = memoryStore();
    const service = createService({ store });
    atTheEnd(() => store.close());
    atTheEnd(() => service.close());
    await service.listen({ host: 'localhost' });
    expect(service.app.addresses()).toEqual([expect.objectContaining({ address: '127.0.0.1' })]);
  });

  it('closing twice is fine, also before anything was served', async () => {
    const scene = await stage();
    await Promise.all([scene.service.close(), scene.service.close()]);
    await scene.service.close();
  });
});
