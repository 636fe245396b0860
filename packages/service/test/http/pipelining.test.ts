/** Requests sent one behind the other on one connection, before the first is answered. */
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { atTheEnd, clearScene, listen, pause, type Stage, stage, until } from '../scene.js';

afterEach(clearScene);

function acquire(path: string, wait: number): string {
  const body = JSON.stringify({ ttl: '60s', wait, owner: 'behind' });
  const head = `POST /v2/locks/${path}/acquire HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json`;
  return `${head}\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`;

function send({ url }: Stage, ...requests: readonly string[]): { socket: Socket; statuses: () => string[] } {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  atTheEnd(() => socket.destroy());
  // Where it is disconnected, with requests that nobody read.
  socket.on('error', () => undefined);
  let heard = '';
  socket.on('data', (chunk) => {
    heard += String(chunk);
  });
  socket.write(requests.join(''));
  const statuses = (): string[] => [...heard.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status = '']) => status);
  return { socket, statuses };
}

describe('requests behind one another', () => {
  it('are answered in their order, and one that waits is not cut off by the timeout of the one before', async () => {
    const scene = await stage();
    const { hold } = await scene.acquire('a/taken');
    const sockets: Socket[] = [];
    scene.service.app.server.on('connection', (socket: Socket) => sockets.push(socket));
    const { statuses } = send(scene, get('/healthz'), acquire('a/taken', 20_000), get('/nowhere'));
    await until(async () => (await scene.get('/v2/locks/a/taken')).body.waiting === 1, 'it waits');
    expect(sockets[0]?.timeout).toBe(0);
    await scene.post('/v2/locks/a/taken/release', { hold });
    await until(() => statuses().length === 3, 'all are answered');
    expect(statuses()).toEqual(['200', '200', '404']);
  });

  it('are a hundred at most: a client with more behind one that waits is disconnected, and waits no more', async () => {
    const scene = await stage();
    const { hold } = await scene.acquire('a/taken');
    const few = send(scene, acquire('a/taken', 20_000), ...Array(100).fill(get('/healthz')));
    await until(async () => (await scene.get('/v2/locks/a/taken')).body.waiting === 1, 'it waits');
    const many = send(scene, acquire('a/taken', 20_000), ...Array(5_000).fill(get('/healthz')));
    await new Promise((resolve) => many.socket.once('close', resolve));
    await until(async () => (await scene.get('/v2/locks/a/taken')).body.waiting === 1, 'one waits no more');
    expect(many.statuses()).toEqual([]);
    await scene.post('/v2/locks/a/taken/release', { hold });
    await until(() => few.statuses().length === 101, 'all are answered');
    expect(new Set(few.statuses())).toEqual(new Set(['200']));
    expect(scene.lines.filter((line) => line.includes('too many pipelined requests'))).toHaveLength(1);
  });

  it('F5: of a client that goes away none waits, holds or watches any more', async () => {
    const scene = await stage({ limits: { streams: 2 } });
    await scene.acquire('a/first');
    const { hold } = await scene.acquire('a/second');
    const watching = [get('/v2/events'), get('/v2/events')];
    const { socket } = send(scene, acquire('a/first', 20_000), acquire('a/second', 20_000), ...watching);
    await until(async () => (await scene.get('/v2/locks/a/first')).body.waiting === 1, 'the first waits');
    socket.destroy();
    await until(async () => (await scene.get('/v2/locks/a/first')).body.waiting === 0, 'it waits no more');
    await scene.post('/v2/locks/a/second/release', { hold });
    await pause(200);
    expect((await scene.get('/v2/locks/a/second')).body).toMatchObject({ holding: 0, waiting: 0 });
    expect((await listen(scene.url, '/v2/events')).status).toBe(200);
  });
});
