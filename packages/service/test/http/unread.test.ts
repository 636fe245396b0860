/** Those who ask for much and read none of it. */
import { connect } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import fastify from 'fastify';
import { pino } from 'pino';
import { afterEach, expect, it } from 'vitest';
import { ANONYMOUS } from '../../src/http/principal.js';
import { logRequests } from '../../src/http/request-log.js';
import { capUnread } from '../../src/http/unread.js';
import { ServiceEvents } from '../../src/service-events.js';
import { atTheEnd, clearScene, pause, stage, until } from '../scene.js';

afterEach(clearScene);

/** Asks so often at once, on one connection, and reads only later. */
function pipelined(url: string, path: string, count: number, header = '') {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  atTheEnd(() => socket.destroy());
  socket.pause();
  const request = (more: string): string => `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${header}${more}\r\n`;
  socket.write(request('').repeat(count - 1) + request('connection: close\r\n'));
  return async (): Promise<readonly string[]> => {
    const all = await textOf(socket);
    return [...all.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status = '']) => status);
  };
}

/** A server whose requests say themselves who sends them. */
async function serverOfMuch() {
  const app = fastify();
  atTheEnd(() => app.close());
  logRequests(app, pino({ enabled: false }), new ServiceEvents());
  capUnread(app);
  app.decorateRequest('principal');
  app.addHook('onRequest', (request, _reply, done) => {
    request.principal = { ...ANONYMOUS, id: String(request.headers.who) };
    done();
  });
  // More than the operating system takes off our hands.
  app.get('/much', () => 'm'.repeat(12_000_000));
  app.get('/little', () => 'm');
  let begun = 0;
  let answered = 0;
  app.get('/much-too-late', async (_request, { raw }) => {
    begun += 1;
    await new Promise((resolve) => raw.once('close', resolve));
    answered += 1;
    return 'm'.repeat(12_000_000);
  });
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  const statusFor = async (who: string, path: string): Promise<number> => {
    const answer = await fetch(url + path, { headers: { who } });
    await answer.text();
    return answer.status;
  };
  return { url, statusFor, begun: () => begun, answered: () => answered };
}

it('a principal whose answers wait to be read gets no more of them; others do, and it does once it has read', async () => {
  const { url, statusFor } = await serverOfMuch();
  const readers = [1, 2].map(() => pipelined(url, '/much', 1, 'who: eve\r\n'));
  await until(async () => (await statusFor('eve', '/much')) !== 200, 'it has not read much');
  expect(await statusFor('eve', '/little')).toBe(200);
  expect(await statusFor('ann', '/much')).toBe(200);
  expect(await Promise.all(readers.map((read) => read()))).toEqual([['200'], ['200']]);
  await until(async () => (await statusFor('eve', '/much')) === 200, 'it has read all');
});

it('an answer to a client that has left already does not count as unread', async () => {
  const { url, statusFor, begun, answered } = await serverOfMuch();
  for (let count = 1; count <= 3; count += 1) {
    const leaving = new AbortController();
    const answer = fetch(`${url}/much-too-late`, { headers: { who: 'eve' }, signal: leaving.signal });
    await until(() => begun() === count, 'the request has arrived');
    leaving.abort();
    await expect(answer).rejects.toThrow();
    await until(() => answered() === count, 'the answer is made');
  }
  expect(await statusFor('eve', '/much')).toBe(200);
});

it.each(['/v2/docs', '/v2/openapi.json'])(
  'everybody may have %s, and thousands of times: it is made once',
  async (path) => {
    const { url, get } = await stage();
    const { text } = await get(path);
    const read = pipelined(url, path, 2_000);
    await pause(200);
    expect(new Set(await read())).toEqual(new Set(['200']));
    expect((await get(path)).text).toBe(text);
  },
);
