/** The header Fencing-Token, set by the sender and checked by servers of every kind. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import Fastify from 'fastify';
import { createLocks, InvalidArgumentError, LeaseLostError } from 'holdfast';
import {
  type FenceStore,
  type FencingCheck,
  fencedFetch,
  fencingCheck,
  fencingHeaders,
  fencingOf,
  memoryFences,
} from 'holdfast/fences';
import { memoryStore } from 'holdfast/memory';
import { afterEach, describe, expect, it } from 'vitest';
import { takeover } from './takeover.js';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

interface Receiver {
  readonly url: string;
  /** What handlers were told to write, with the token that they read. */
  readonly written: string[];
}

type Start = (check: FencingCheck) => Promise<Receiver>;

const FRAMEWORKS: Readonly<Record<string, Start>> = {
  async Express(check) {
    const written: string[] = [];
    const app = express();
    app.use(express.text());
    app.get('/account', (_request, response) => response.send('read'));
    app.put('/account', check.express, (request, response) => {
      written.push(`${request.body} ${fencingOf(request)?.token}`);
      response.send('written');
    });
    return { url: `${await listening(createServer(app))}/account`, written };
  },
  async Fastify(check) {
    const written: string[] = [];
    const app = Fastify();
    app.addHook('preHandler', check.fastify);
    app.get('/account', async () => 'read');
    app.put('/account', async (request) => {
      written.push(`${request.body} ${fencingOf(request)?.token}`);
      return 'written';
    });
    closers.push(() => app.close());
    return { url: `${await app.listen({ host: '127.0.0.1', port: 0 })}/account`, written };
  },
  async Request(check) {
    const written: string[] = [];
    async function handle(request: Request): Promise<Response> {
      const refused = await check.request(request);
      if (refused) return refused;
      if (request.method === 'GET') return new Response('read');
      written.push(`${await request.text()} ${fencingOf(request)?.token}`);
      return new Response('written');
    }
    // What Deno, Bun, Cloudflare and Hono do by themselves.
    const server = createServer(async (incoming, outgoing) => {
      const chunks: Buffer[] = [];
      for await (const chunk of incoming) chunks.push(chunk);
      const { method = '', headers } = incoming;
      const body = method === 'GET' ? {} : { body: Buffer.concat(chunks) };
      const pairs = Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]);
      const request = new Request('http://host/account', { method, headers: pairs, ...body });
      const response = await handle(request).catch(
        (error: Error) => new Response(error.message, { status: 500 }),
      );
      outgoing.writeHead(response.status, Object.fromEntries(response.headers));
      outgoing.end(await response.text());
    });
    return { url: await listening(server), written };
  },
};

const put = (body: string, headers: Record<string, string> = {}): RequestInit => ({
  method: 'PUT',
  body,
  headers: { 'content-type': 'text/plain', ...headers },
});

describe.each(Object.entries(FRAMEWORKS))('a receiver with %s', (_name, start) => {
  it('F1: refuses the late request of a paused holder with 412; what its successor wrote stands', async () => {
    const { url, written } = await start(fencingCheck({ store: memoryFences() }));
    const { paused, successor, close } = await takeover('account:ann');
    closers.push(close);
    for (const body of ['10', '20']) {
      const response = await fencedFetch(successor)(url, put(body));
      expect([response.status, await response.text()]).toEqual([200, 'written']);
    }
    // Paused between its check and the sending.
    const late = { ...paused, key: paused.key, token: paused.token, assertHeld: () => undefined };
    const unaware = { ...late, signal: new AbortController().signal };
    await expect(fencedFetch(unaware)(url, put('1'))).rejects.toThrow(LeaseLostError);
    const plain = await fetch(url, put('1', fencingHeaders(paused)));
    expect(plain.status).toBe(412);
    expect(plain.headers.get('content-type')).toMatch(/^application\/problem\+json/);
    expect(await plain.json()).toMatchObject({
      status: 412,
      code: 'stale-token',
      key: 'account:ann',
      token: paused.token,
      detail: expect.stringContaining('A later holder of "account:ann" has written.'),
    });
    expect(written).toEqual([`10 ${successor.token}`, `20 ${successor.token}`]);
  });

  it('asks for the header with 428, refuses a malformed one with 400, and lets reads pass', async () => {
    const { url, written } = await start(fencingCheck({ store: memoryFences() }));
    const missing = await fetch(url, put('1'));
    expect([missing.status, await missing.json()]).toEqual([
      428,
      expect.objectContaining({ code: 'fencing-token-required', status: 428 }),
    ]);
    for (const value of [
      '',
      'seventeen a',
      '17',
      '0 a',
      '017 a',
      '17 a, 18 b',
      '17 %',
      '99999999999999999 a',
      '9007199254740991 a',
      '17 \u00e4',
    ]) {
      const response = await fetch(url, put('1', { 'fencing-token': value }));
      expect([value, response.status, await response.json()]).toEqual([
        value,
        400,
        expect.objectContaining({ code: 'invalid-argument' }),
      ]);
    }
    expect(await (await fetch(url)).text()).toBe('read');
    expect(written).toEqual([]);
  });

  it('takes requests without the header where it is not required', async () => {
    const { url, written } = await start(fencingCheck({ store: memoryFences(), required: false }));
    expect((await fetch(url, put('1'))).status).toBe(200);
    expect(written).toEqual(['1 undefined']);
  });

  it('refuses a token of another key than that of the request', async () => {
    const { url } = await start(fencingCheck({ store: memoryFences(), key: () => 'account:ann' }));
    const right = await fetch(url, put('1', fencingHeaders({ key: 'account:ann', token: 7 })));
    const other = await fetch(url, put('1', fencingHeaders({ key: 'mine', token: 7 })));
    expect([right.status, other.status]).toEqual([200, 400]);
    expect(await other.json()).toMatchObject({
      detail: expect.stringContaining('needs the lock "account:ann"'),
    });
  });

  it('takes a token of the present, and none from more than a day ahead', async () => {
    const { url } = await start(fencingCheck({ store: memoryFences() }));
    const dayMs = 86_400_000;
    const statuses: number[] = [];
    for (const aheadMs of [2 * dayMs, dayMs / 2, 0]) {
      const token = (Date.now() + aheadMs) * 1000;
      const response = await fetch(url, put('1', fencingHeaders({ key: `ahead ${aheadMs}`, token })));
      statuses.push(response.status);
    }
    expect(statuses).toEqual([400, 200, 200]);
  });

  it('fails, and writes nothing, when its store fails', async () => {
    const broken: FenceStore = { raise: () => Promise.reject(new Error('the store is down')) };
    const { url, written } = await start(fencingCheck({ store: broken }));
    const response = fetch(url, put('1', fencingHeaders({ key: 'a', token: 1 })));
    const status = await response.then((answer) => answer.status);
    expect(status).toBe(500);
    expect(written).toEqual([]);
  });
});

describe('the header', () => {
  it.each(['account:ann', 'a b/c,d;e"f%', 'grüße', '鍵', '🔑', "it's (1)*!"])('carries the key %j', (key) => {
    const headers = fencingHeaders({ key, token: Number.MAX_SAFE_INTEGER });
    expect(headers['Fencing-Token']).toMatch(/^9007199254740991 [!-~]+$/);
    const web = new Request('http://host', { headers });
    const node = { headers: { 'fencing-token': headers['Fencing-Token'] } };
    for (const request of [web, node, { headers }]) {
      expect(fencingOf(request)).toEqual({ key, token: Number.MAX_SAFE_INTEGER });
    }
  });

  it('is found in whatever case its name is written, and only once', async () => {
    for (const name of ['Fencing-Token', 'fencing-token', 'FENCING-TOKEN', 'Fencing-token']) {
      expect(fencingOf({ headers: { get: 'x', [name]: '17 a' } })).toEqual({ key: 'a', token: 17 });
    }
    expect(fencingOf({ headers: { 'Fencing-Token': undefined, 'fencing-token': '17 a' } })?.token).toBe(17);
    const twice = { 'Fencing-Token': '17 a', 'fencing-token': '18 a' };
    expect(() => fencingOf({ headers: twice })).toThrow(InvalidArgumentError);
    const check = fencingCheck({ store: memoryFences(), required: false });
    for (const headers of [twice, { 'Fencing-Token': 'garbage' }]) {
      expect((await check.request({ method: 'PUT', headers }))?.status).toBe(400);
    }
  });

  it.each(['17 \u00e4', '17 \u00c3\u00a4', '17 a\u007f', '17 a\u0000', '17 a,b'])(
    'carries the key in visible ASCII only, not as %j',
    (value) => {
      expect(() => fencingOf({ headers: { 'fencing-token': value } })).toThrow(InvalidArgumentError);
    },
  );

  it('is absent from a request without it, and refuses what is no key and no token', () => {
    expect(fencingOf(new Request('http://host'))).toBeNull();
    expect(fencingOf({ headers: {} })).toBeNull();
    expect(() => fencingHeaders({ key: '', token: 1 })).toThrow(InvalidArgumentError);
    expect(() => fencingHeaders({ key: 'a', token: 0 })).toThrow(InvalidArgumentError);
    expect(() => fencingCheck({} as never)).toThrow(/needs a store/);
    expect(() => fencingCheck({ store: memoryFences(), requird: true } as never)).toThrow(/requird/);
  });
});

describe('fencedFetch', () => {
  const lease = () => createLocks(memoryStore()).acquire('order:42');

  it('keeps the headers and the signal of a request, and of its options', async () => {
    const own = await lease();
    const seen: (readonly [string | null, string | null])[] = [];
    const send = fencedFetch(own, async (_input, init) => {
      const headers = new Headers(init?.headers);
      seen.push([headers.get('x-mine'), headers.get('fencing-token')]);
      init?.signal?.throwIfAborted();
      return new Response('sent');
    });
    const headers = { 'x-mine': 'yes' };
    await send('http://host', { headers });
    await send(new Request('http://host', { headers }));
    const value = `${own.token} order%3A42`;
    expect(seen).toEqual([
      ['yes', value],
      ['yes', value],
    ]);
    const mine = new Error('mine');
    await expect(send('http://host', { signal: AbortSignal.abort(mine) })).rejects.toBe(mine);
    await own.release();
  });

  it('follows a redirect only where it is told to: the header is for one receiver', async () => {
    const seen: (string | undefined)[] = [];
    const other = await listening(
      createServer((incoming, outgoing) => {
        seen.push(String(incoming.headers['fencing-token']));
        outgoing.end('other');
      }),
    );
    const url = await listening(
      createServer((_incoming, outgoing) => void outgoing.writeHead(307, { location: other }).end()),
    );
    const own = await lease();
    const send = fencedFetch(own);
    for (const input of [url, new Request(url)]) {
      const response = await send(input);
      expect([response.status, response.headers.get('location')]).toEqual([307, other]);
    }
    await expect(send(new Request(url, { redirect: 'error' }))).rejects.toThrow(TypeError);
    expect(seen).toEqual([]);
    expect(await (await send(url, { redirect: 'follow' })).text()).toBe('other');
    expect(seen).toEqual([`${own.token} order%3A42`]);
    await own.release();
  });

  it('sends nothing once the lease is over, and aborts a request when the lease is lost', async () => {
    const own = await createLocks(memoryStore()).acquire('order:42', { ttl: 2_000, renew: false });
    let requests = 0;
    const url = await listening(
      createServer(() => {
        requests += 1;
      }),
    );
    const send = fencedFetch(own);
    await expect(send(url)).rejects.toThrow(LeaseLostError);
    await expect(send(url)).rejects.toThrow(LeaseLostError);
    expect(requests).toBe(1);
  });

  it('leaves other conditions that failed to its caller', async () => {
    const own = await lease();
    const answers = [
      new Response('no match', { status: 412 }),
      Response.json(
        { code: 'other' },
        { status: 412, headers: { 'content-type': 'application/problem+json' } },
      ),
      new Response('{', { status: 412, headers: { 'content-type': 'application/problem+json' } }),
    ];
    for (const answer of answers) {
      const response = await fencedFetch(own, async () => answer)('http://host');
      expect([response.status, response.bodyUsed]).toEqual([412, false]);
    }
    await own.release();
  });
});
