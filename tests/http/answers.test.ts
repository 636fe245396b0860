/** What a service, or whatever else is at its address, may answer, and what that means for the commands. */
import { createServer } from 'node:net';
import { createLocks, openStore, UnsupportedError } from 'holdfast';
import { httpStore } from 'holdfast/http';
import type { Store } from 'holdfast/protocol';
import { afterEach, describe, expect, it } from 'vitest';
import { atTheEnd, claimOf, clearScene, type Fake, fakeService, pause, say, until } from './scene.js';

afterEach(clearScene);

const KEY = 'hf_a-secret-that-nobody-may-see';

function storeAt(...fakes: readonly Pick<Fake, 'url'>[]): Store {
  const store = httpStore({ urls: fakes.map(({ url }) => url), apiKey: KEY });
  atTheEnd(() => store.close());
  return store;
}

function answering(status: number, type: string, body: string, headers: Record<string, string> = {}) {
  return fakeService((_request, response) => {
    response.writeHead(status, { 'content-type': type, ...headers }).end(body);
  });
}

const problem = (status: number, code: string, detail: string): string =>
  JSON.stringify({ type: `urn:holdfast:problem:${code}`, title: 'x', status, detail, code });

async function failureOf(reply: Promise<unknown>): Promise<Error> {
  const failure = await reply.then(
    (answer) => new Error(`It was answered: ${JSON.stringify(answer)}`),
    (error: unknown) => error,
  );
  if (!(failure instanceof Error)) throw new Error('Not even an error.');
  return failure;
}

describe('a refusal is known: nothing was done, and asking again does not help', () => {
  it.each([
    [401, 'unauthorized', 'The key is not known.', /rejected the credentials \(The key is not known\.\)/],
    [403, 'forbidden', 'No "lock" here.', /does not allow this \(No "lock" here\.\)/],
    [400, 'invalid-argument', 'body.commands.0 is wrong.', /refuses the request.*body\.commands\.0 is wrong/],
    [413, 'too-large', 'The body is larger.', /refuses the request: status 413/],
    [501, 'unsupported', 'A newer Holdfast wrote it.', /A newer Holdfast wrote it/],
    [404, 'not-found', 'Nothing here.', /no Holdfast service at .* Check the url/],
  ])('%i %s', async (status, code, detail, words) => {
    const store = storeAt(await answering(status, 'application/problem+json', problem(status, code, detail)));
    const error = await failureOf(say(store, claimOf('k')));
    expect(error).toBeInstanceOf(UnsupportedError);
    expect(error.message).toMatch(words);
    expect(JSON.stringify([error.message, error.stack])).not.toContain(KEY);
  });

  it('a page of a proxy that says 404, and a redirection, which is not followed', async () => {
    const page = await answering(404, 'text/html', '<h1>Not\nfound</h1>');
    expect(await failureOf(say(storeAt(page), claimOf('k')))).toBeInstanceOf(UnsupportedError);
    const elsewhere = await answering(200, 'application/json', '{"replies":[]}');
    const moved = await answering(301, 'text/html', '', { location: `${elsewhere.url}/v2/batch` });
    const error = await failureOf(say(storeAt(moved), claimOf('k')));
    expect(error).toBeInstanceOf(UnsupportedError);
    expect(error.message).toContain(`redirects to ${elsewhere.url}`);
    expect(elsewhere.asked).toEqual([]);
  });
});

describe('everything else is unknown: never a refusal, never an answer', () => {
  it.each([
    [429, 'application/problem+json', problem(429, 'rate-limited', 'Slower.'), /status 429 \(Slower\.\)/],
    [503, 'application/problem+json', problem(503, 'closing', 'Closing.'), /status 503 \(Closing\.\)/],
    [500, 'application/problem+json', problem(500, 'internal', 'Oh.'), /status 500/],
    [502, 'text/html', '<html><h1>Bad\n gateway</h1>', /status 502 \(<html><h1>Bad gateway<\/h1>\)/],
    [
      200,
      'text/html',
      `<html>${'log in '.repeat(100)}`,
      /not JSON: "<html>log in .{1,250}Is a proxy in between/,
    ],
    [200, 'application/json', '{"replies":[{"kind":"gran', /not JSON/],
    [200, 'application/json', '{"replies":[]}', /not a list of replies/],
    [200, 'application/json', '{"replies":[null]}', /unanswered/],
    [200, 'application/json', 'null', /not a list of replies/],
    [
      200,
      'application/json',
      '{"replies":[{"problem":{"code":"unknown","detail":"Out."}}]}',
      /Out\. \(unknown\)/,
    ],
    [200, 'application/json', '{"replies":[{"problem":7}]}', /no reason given/],
  ])('%i %s %.40s', async (status, type, body, words) => {
    const error = await failureOf(say(storeAt(await answering(status, type, body)), claimOf('k')));
    expect(error).not.toBeInstanceOf(UnsupportedError);
    expect(error.message).toMatch(words);
    expect(error.message.length).toBeLessThan(600);
  });

  it('an answer that is cut off in the middle, or no HTTP at all', async () => {
    const cut = await fakeService((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
      response.write('{"replies":[', () => response.destroy());
    });
    expect((await failureOf(say(storeAt(cut), claimOf('k')))).message).toMatch(/not reached/);
    const noise = createServer((socket) =>
      socket.on('error', () => socket.destroy()).end('220 smtp ready\r\n'),
    );
    await new Promise<void>((resolve) => noise.listen(0, '127.0.0.1', resolve));
    atTheEnd(() => noise.close());
    const { port } = noise.address() as { port: number };
    const error = await failureOf(say(storeAt({ url: `http://127.0.0.1:${port}` }), claimOf('k')));
    expect(error).not.toBeInstanceOf(UnsupportedError);
    expect(error.message).toMatch(/not reached: /);
  });

  it('nobody there: said in words, also by openStore', async () => {
    const { url, server } = await fakeService(() => undefined);
    server.close();
    expect((await failureOf(say(storeAt({ url }), claimOf('k')))).message).toMatch(
      /not reached: .*ECONNREFUSED/,
    );
    const store = await openStore(url.replace('//', '//secret@'));
    atTheEnd(() => store.close());
    const { message } = await failureOf(say(store, claimOf('k')));
    expect(message).toContain(`nothing listens at ${url}: is the server running`);
    expect(message).not.toContain('secret');
  });

  it('P15: none of it becomes a grant or a loss for the locks on it', async () => {
    const answers = [
      '<html>',
      '{"replies":[{}]}',
      '{"replies":[{"kind":"granted"}]}',
      '{"replies":[{"kind":"lost","now":1}]}',
    ];
    let asked = 0;
    const fake = await fakeService((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(answers[asked++ % answers.length]);
    });
    const locks = createLocks(storeAt(fake));
    atTheEnd(() => locks.close({ drain: 0 }));
    await expect(locks.acquire('k', { wait: '1s' })).rejects.toMatchObject({ code: 'store' });
    expect(asked).toBeGreaterThan(2);
  });
});

describe('several commands at once', () => {
  const granted = (key: string) => ({ kind: 'granted', key, now: 1, decision: 1, othersWait: false });

  /** Takes no command whose owner is "bad", and no more than so many at once. */
  function picky(most: number, sizes: number[]) {
    return fakeService((request, response) => {
      let text = '';
      request.on('data', (chunk) => {
        text += chunk;
      });
      request.on('end', () => {
        const { commands } = JSON.parse(text) as { commands: { key: string; owner?: string }[] };
        sizes.push(commands.length);
        const [status, code] = commands.length > most ? [413, 'too-large'] : [400, 'invalid-argument'];
        if (commands.length > most || commands.some(({ owner }) => owner === 'bad')) {
          response.writeHead(status as number, { 'content-type': 'application/problem+json' });
          response.end(problem(status as number, code as string, 'no'));
          return;
        }
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ replies: commands.map(({ key }) => granted(key)) }));
      });
    });
  }

  it('one that the service does not take is refused alone; too many go in parts', async () => {
    const sizes: number[] = [];
    const store = storeAt(await picky(3, sizes));
    const claims = Array.from({ length: 10 }, (_, index) =>
      claimOf(`k${index}`, { owner: index === 4 ? 'bad' : 'good' }),
    );
    const results = await Promise.allSettled(store.apply(claims));
    expect(results.map(({ status }) => status === 'fulfilled')).toEqual(
      claims.map(({ owner }) => owner === 'good'),
    );
    const keys = results.map((result) =>
      result.status === 'fulfilled' ? (result.value as { key?: string }).key : 'k4',
    );
    expect(keys).toEqual(claims.map(({ key }) => key));
    const refused = results[4];
    expect(refused?.status === 'rejected' && refused.reason).toBeInstanceOf(UnsupportedError);
  });

  it('F14: all of a moment is one request, but renewals are in one of their own; never above 512 or half a megabyte', async () => {
    const sizes: number[] = [];
    const store = storeAt(await picky(10_000, sizes));
    const claims = Array.from({ length: 64 }, (_, index) => claimOf(`k${index}`));
    await Promise.all(store.apply(claims));
    expect(sizes.splice(0)).toEqual([64]);
    const renewals = claims.map(({ hold }, index) => ({
      kind: 'renew' as const,
      key: `r${index}`,
      hold,
      ttlMs: 1_000,
      block: false,
    }));
    await Promise.all(store.apply([...renewals, ...claims]));
    expect(sizes.splice(0)).toEqual([64, 64]);
    await Promise.all(store.apply(Array.from({ length: 600 }, (_, index) => claimOf(`k${index}`))));
    expect(sizes.splice(0)).toEqual([512, 88]);
    const metadata = JSON.stringify('ü'.repeat(2_000));
    await Promise.all(
      store.apply(Array.from({ length: 300 }, (_, index) => claimOf(`k${index}`, { metadata }))),
    );
    expect(sizes.length).toBeGreaterThan(1);
  });
});

describe('commands that come one by one', () => {
  /** Answers after so long, each command with its own key. */
  function slow(ms: number, sizes: number[]) {
    return fakeService((request, response) => {
      let text = '';
      request.on('data', (chunk) => {
        text += chunk;
      });
      request.on('end', async () => {
        const { commands } = JSON.parse(text) as { commands: { key: string }[] };
        sizes.push(commands.length);
        await pause(ms);
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(
          JSON.stringify({ replies: commands.map(({ key }) => ({ kind: 'released', key, now: 1 })) }),
        );
      });
    });
  }

  it('go together with what is said while others are on their way, and each gets its own answer', async () => {
    const sizes: number[] = [];
    const store = storeAt(await slow(20, sizes));
    const replies: Promise<unknown>[] = [];
    for (let index = 0; index < 200; index++) {
      replies.push(say(store, claimOf(`k${index}`)));
      await Promise.resolve();
    }
    const keys = (await Promise.all(replies)).map((reply) => (reply as { key: string }).key);
    expect(keys).toEqual(replies.map((_, index) => `k${index}`));
    expect(sizes.reduce((sum, size) => sum + size)).toBe(200);
    expect(sizes.length).toBeLessThan(20);
  });

  it('F30: wait for no request that hangs, nor do renewals for claims', async () => {
    let asked = 0;
    const fake = await fakeService((_request, response) => {
      asked += 1;
      if (asked <= 4) return;
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end('{"replies":[{"kind":"renewed","now":1}]}');
    });
    const store = storeAt(fake);
    const hanging = Array.from({ length: 4 }, (_, index) => failureOf(say(store, claimOf(`k${index}`))));
    await until(() => asked === 4, 'all four hang');
    const { key, hold } = claimOf('held');
    expect(await say(store, { kind: 'renew', key, hold, ttlMs: 1_000, block: false })).toMatchObject({
      kind: 'renewed',
    });
    await pause(300);
    expect(await say(store, claimOf('late'))).toMatchObject({ kind: 'renewed' });
    await store.close();
    await Promise.all(hanging);
  });
});

describe('a service that hangs', () => {
  it('is left for another after a second, and asked again once that one fails', async () => {
    const hung = await fakeService(() => undefined);
    const works = await answering(200, 'application/json', '{"replies":[{"kind":"released","now":1}]}');
    const store = storeAt(hung, works);
    const first = failureOf(say(store, claimOf('k')));
    await pause(1_100);
    expect(await say(store, claimOf('k'))).toMatchObject({ kind: 'released' });
    expect(works.asked).toHaveLength(1);
    works.server.closeAllConnections();
    works.server.close();
    await failureOf(say(store, claimOf('k')));
    const again = failureOf(say(store, claimOf('k')));
    await until(() => hung.asked.length === 2, 'the first was asked again');
    await store.close();
    expect((await first).message).toMatch(/closed before the service answered/);
    await again;
  });

  it('locks wait no longer for it than they are told to, and say that the outcome is unknown', async () => {
    const locks = createLocks(storeAt(await fakeService(() => undefined)));
    const beganMs = performance.now();
    await expect(locks.acquire('k', { wait: '500ms' })).rejects.toMatchObject({ code: 'store' });
    expect(performance.now() - beganMs).toBeLessThan(10_000);
    await locks.close({ drain: 0 }).catch((error: unknown) => expect(error).toMatchObject({ code: 'store' }));
  });
});
