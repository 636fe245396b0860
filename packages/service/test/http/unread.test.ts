/** Those who ask for much and read none of it. */
import { connect } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { memoryStore } from 'holdfast/memory';
import { afterEach, expect, it } from 'vitest';
import { createAuth } from '../../src/auth/index.js';
import { bearer, keyFile } from '../auth/issuer.js';
import { atTheEnd, clearScene, pause, stage, until } from '../scene.js';
import { fill } from '../v2/full-store.js';

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

it('a principal whose answers wait to be read gets no more of them; others do, and it does once it has read', async () => {
  const { path, keys } = await keyFile({ eve: ['read:a'], ann: ['read:a'] });
  const store = memoryStore();
  const metadata = JSON.stringify('m'.repeat(4_000));
  await fill(
    store,
    Array.from({ length: 240 }, (_, index) => ({ key: `a/${index}`, metadata })),
  );
  const { url, call } = await stage({ store, auth: createAuth({ keys: path }) });
  const list = '/v2/locks?limit=1000';
  const read = pipelined(url, list, 60, `authorization: Bearer ${keys.eve}\r\n`);
  await pause(1_000);
  expect((await call('GET', list, undefined, bearer(keys.ann))).status).toBe(200);
  expect((await call('GET', '/v2/locks/a/none', undefined, bearer(keys.eve))).status).toBe(200);
  const statuses = await read();
  expect(statuses).toHaveLength(60);
  expect(new Set(statuses)).toEqual(new Set(['200', '429']));
  expect(statuses.filter((status) => status === '200').length).toBeLessThan(40);
  await until(
    async () => (await call('GET', list, undefined, bearer(keys.eve))).status === 200,
    'it has read all of them',
  );
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
