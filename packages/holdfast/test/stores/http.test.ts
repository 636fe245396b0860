import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Claim, NotExecutedError, type Store } from '../../src/protocol/index.js';
import { EventStream } from '../../src/stores/http/event-stream.js';
import { httpTarget } from '../../src/stores/http/from-url.js';
import { httpStore, type RequestLike, type ResponseLike } from '../../src/stores/http/index.js';

const claim: Claim = {
  kind: 'claim',
  key: 'k',
  hold: { process: 'p', number: 1 },
  owner: 'o',
  permits: 1,
  capacity: 1,
  ttlMs: 1_000,
  queue: true,
  inbox: null,
  metadata: null,
};

type Answer = (url: string, request: RequestLike) => ResponseLike | Promise<ResponseLike>;

const json = (body: unknown, status = 200): ResponseLike => ({
  status,
  headers: new Headers({ 'content-type': 'application/json' }),
  body: null,
  text: async () => JSON.stringify(body),
});

function recording(answer: Answer = () => json({ replies: [{ kind: 'released', now: 1 }] })) {
  const asked: { readonly url: string; readonly request: RequestLike }[] = [];
  return {
    asked,
    fetch: async (url: string, request: RequestLike): Promise<ResponseLike> => {
      asked.push({ url, request });
      return await answer(url, request);
    },
  };
}

const sayClaim = (store: Store): Promise<unknown> => Promise.all(store.apply([claim]));

it('an equal command reaches the service again, through a fetch that remembers its answers, too', async () => {
  const { asked, fetch } = recording();
  const answers = new Map<string, Promise<ResponseLike>>();
  const remembering = (url: string, { method, headers, body }: RequestLike): Promise<ResponseLike> => {
    const request = JSON.stringify([url, method, headers, body]);
    const answer = answers.get(request) ?? fetch(url, { method, headers, body } as RequestLike);
    answers.set(request, answer);
    return answer;
  };
  const store = httpStore({ url: 'https://a', fetch: remembering });
  await sayClaim(store);
  await sayClaim(store);
  expect(asked).toHaveLength(2);
});

describe('the options', () => {
  it.each([
    [{}, /either url, or urls/],
    [{ url: 'http://a', urls: ['http://b'] }, /either url, or urls/],
    [{ urls: [] }, /1 to 64 addresses/],
    [{ url: 'locks.example.com' }, /begins with http:\/\/ or https:\/\//],
    [{ url: 'redis://a' }, /begins with http:\/\/ or https:\/\//],
    [{ url: 'https://secret@a' }, /pass it as apiKey or jwt/],
    [{ url: 'https://a?key=secret' }, /no \? and no #/],
    [{ url: 'https://a', apiKey: 'secret', jwt: 'secret' }, /an apiKey or a jwt, not both/],
    [{ url: 'https://a', apiKey: 'secret\r\nx: y' }, /apiKey has to be text without spaces/],
    [{ url: 'https://a', jwt: '' }, /jwt has to be text without spaces/],
    [{ url: 'https://a', headers: { 'x-y': 'secret\n' } }, /header "x-y" is not valid/],
    [{ url: 'https://a', fetch: 7 }, /fetch has to be a function/],
    [{ url: 'https://a', key: 'secret' }, /no option "key"/],
  ])('%j are refused, without a secret in the message', (options, words) => {
    const open = (): Store => httpStore(options as never);
    expect(open).toThrow(words);
    expect(open).not.toThrow(/secret/);
  });

  it('say who asks, where, and what goes along; a path before /v2 is kept', async () => {
    const { asked, fetch } = recording();
    await sayClaim(
      httpStore({ url: 'https://a/locks/', apiKey: 'hf_1', headers: { 'X-Team': 'blue' }, fetch }),
    );
    expect(asked[0]?.url).toBe('https://a/locks/v2/batch');
    expect(asked[0]?.request).toMatchObject({
      method: 'POST',
      redirect: 'manual',
      headers: { authorization: 'Bearer hf_1', 'x-team': 'blue', 'content-type': 'application/json' },
    });
  });

  it('a refusal names the key of the record, to list on behind it', async () => {
    const problem = { code: 'unsupported', detail: 'A newer Holdfast wrote it.', key: 'default/newer' };
    const store = httpStore({ url: 'http://a', fetch: recording(() => json(problem, 501)).fetch });
    await expect(store.read('default/newer')).rejects.toMatchObject({
      name: 'UnsupportedError',
      key: 'default/newer',
    });
  });

  it('a function that returns the JWT is called for every request; without one nothing is sent', async () => {
    const { asked, fetch } = recording();
    const jwts = ['one', 'two', 'th ree'];
    const store = httpStore({ url: 'https://a', jwt: async () => jwts.shift() ?? '', fetch });
    await sayClaim(store);
    await sayClaim(store);
    await expect(sayClaim(store)).rejects.toThrow(/text without spaces/);
    await expect(sayClaim(store)).rejects.toBeInstanceOf(NotExecutedError);
    expect(asked.map(({ request }) => request.headers.authorization)).toEqual(['Bearer one', 'Bearer two']);
  });
});

describe('openStore', () => {
  it.each([
    ['http', '//localhost:8080', { urls: ['http://localhost:8080'] }],
    ['https', '//a,b:8443/locks/', { urls: ['https://a/locks', 'https://b:8443/locks'] }],
    ['https', '//hf_k%40y@[::1]:8080', { urls: ['https://[::1]:8080'], apiKey: 'hf_k@y' }],
  ] as const)('%s:%s', (scheme, rest, target) => {
    expect(httpTarget(scheme, rest)).toEqual(target);
  });

  it('takes the API key from the environment, unless the URL has one', () => {
    expect(httpTarget('https', '//a', 'hf_1').apiKey).toBe('hf_1');
    expect(httpTarget('https', '//hf_2@a', 'hf_1').apiKey).toBe('hf_2');
    expect(httpTarget('https', '//a', '').apiKey).toBeUndefined();
  });

  it.each(['//', '//secret@', '//user:secret@a', '//a?key=secret', 'a', '//a:99999'])(
    'refuses %s',
    (rest) => {
      expect(() => httpTarget('https', rest)).toThrow();
      expect(() => httpTarget('https', rest)).not.toThrow(/secret/);
    },
  );
});

describe('server-sent events', () => {
  const text =
    '\uFEFFretry: 1000\n\n: still here\r\n\r\nevent: wake\ndata: {"key":"ü\u{1F512}",\ndata:"why":"turn"}\nid: 7\n\nevent: empty\n\ndata\r\rdata:  x\n\n';
  const expected = [
    { event: 'wake', data: '{"key":"ü\u{1F512}",\n"why":"turn"}' },
    { event: 'message', data: '' },
    { event: 'message', data: ' x' },
  ];

  it('are the same however they are cut', () => {
    const bytes = new TextEncoder().encode(text);
    for (let size = 1; size <= bytes.length; size++) {
      const stream = new EventStream();
      const events = [];
      for (let from = 0; from < bytes.length; from += size) {
        events.push(...stream.push(bytes.subarray(from, from + size)));
      }
      expect(events, `pieces of ${size}`).toEqual(expected);
    }
  });

  it('one without end is not kept for ever', () => {
    const stream = new EventStream();
    const piece = new TextEncoder().encode('x'.repeat(1_024));
    expect(() => {
      for (let count = 0; count < 100; count++) stream.push(piece);
    }).toThrow(/without end/);
  });
});

describe('wake-ups', () => {
  afterEach(() => vi.useRealTimers());

  function streaming(pieces: readonly string[], signal?: AbortSignal): ResponseLike {
    return {
      status: 200,
      headers: new Headers({ 'content-type': 'text/event-stream' }),
      body: new ReadableStream({
        start(controller) {
          for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
          signal?.addEventListener('abort', () => controller.error(signal.reason));
        },
      }),
      text: async () => '',
    };
  }

  it('come to the listener; what is no wake-up is nothing; the words of the store are passed on', async () => {
    const { fetch } = recording(() =>
      streaming([
        'event: ready\ndata: {}\n\n',
        'event: wake\ndata: {"key":"k","why":"turn"}\n\nevent: wake\ndata: {"key":7,"why":"turn"}\n\n',
        'event: wake\ndata: {"key":"k","why":"never"}\n\nevent: listening\ndata: {"listening":false}\n\n',
        'event: news\ndata: x\n\nevent: wake\ndata: {"key":"l","why":"evicted"}\n\n',
      ]),
    );
    const store = httpStore({ url: 'http://a', fetch });
    const heard: unknown[] = [];
    const stop = await store.listen?.(
      'an inbox/of this test',
      (key, why) => heard.push([key, why]),
      (hears) => heard.push(hears),
    );
    await expect.poll(() => heard).toEqual([['k', 'turn'], false, ['l', 'evicted']]);
    await stop?.();
    await store.close();
  });

  it('F32: a stream that falls silent, though nobody ended it, is opened again', async () => {
    vi.useFakeTimers();
    const said = 'event: ready\ndata: {}\n\n';
    const { asked, fetch } = recording((url, { signal }) =>
      url.endsWith('/events') ? streaming([said], signal) : json({ replies: [{ kind: 'released', now: 1 }] }),
    );
    const store = httpStore({ url: 'http://a', fetch });
    const streams = (): number => asked.filter(({ url }) => url.endsWith('/events')).length;
    const hearing: boolean[] = [];
    await store.listen?.(
      'inbox',
      () => undefined,
      (hears) => hearing.push(hears),
    );
    await sayClaim(store);
    expect(streams()).toBe(1);
    await vi.advanceTimersByTimeAsync(46_000);
    expect(hearing).toEqual([false, true]);
    expect(streams()).toBe(2);
    await store.close();
  });

  it('one that never says that it is listened to, behind a proxy that keeps it back, is given up', async () => {
    vi.useFakeTimers();
    const { fetch } = recording((url, { signal }) =>
      url.endsWith('/events')
        ? streaming(['retry: 1000\n\n'], signal)
        : json({ replies: [{ kind: 'released', now: 1 }] }),
    );
    const store = httpStore({ url: 'http://a', fetch });
    const listening = Promise.resolve(store.listen?.('inbox', () => undefined)).catch(
      (error: unknown) => error,
    );
    await vi.advanceTimersByTimeAsync(11_000);
    expect(await listening).toMatchObject({ message: 'The stream of wake-ups fell silent.' });
  });

  it('a store behind the service that has none: the listener is told so, and the core goes by polls', async () => {
    const problem = { code: 'unsupported', detail: 'The store sends no wake-ups.' };
    const { asked, fetch } = recording((url) =>
      url.endsWith('/events') ? json(problem, 501) : json({ replies: [{ kind: 'released', now: 1 }] }),
    );
    const store = httpStore({ url: 'http://a', fetch });
    const hearing: boolean[] = [];
    const stop = await store.listen?.(
      'inbox',
      () => undefined,
      (hears) => hearing.push(hears),
    );
    expect(hearing).toEqual([false]);
    await sayClaim(store);
    await sayClaim(store);
    expect(asked.filter(({ url }) => url.endsWith('/events'))).toHaveLength(1);
    await stop?.();
  });

  it('a service that cannot be listened to now is asked again: wake-ups do not stay away for ever', async () => {
    const { fetch } = recording(() => json({ code: 'rate-limited', detail: 'Later.' }, 429));
    await expect(httpStore({ url: 'http://a', fetch }).listen?.('inbox', () => undefined)).rejects.toThrow(
      /429/,
    );
  });
});
