import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { startProxy, type TcpProxy } from 'holdfast-test-servers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { within } from './processes.js';

/** Answers every piece with itself, and remembers what came. */
const received: string[] = [];
const sockets = new Set<Socket>();
const echo = createServer((socket) => {
  sockets.add(socket);
  socket.on('close', () => sockets.delete(socket));
  socket.on('error', () => undefined);
  socket.on('data', (piece) => {
    received.push(String(piece));
    socket.write(piece);
  });
});
let proxy: TcpProxy;

interface Client {
  readonly socket: Socket;
  readonly heard: string[];
  readonly closed: Promise<string>;
  say(text: string): void;
}

function open(): Client {
  const socket = connect({ host: proxy.host, port: proxy.port });
  const heard: string[] = [];
  let reason = 'closed';
  socket.on('data', (piece) => heard.push(String(piece)));
  socket.on('error', (error: NodeJS.ErrnoException) => {
    reason = error.code ?? error.message;
  });
  const closed = new Promise<string>((resolve) => socket.on('close', () => resolve(reason)));
  return { socket, heard, closed, say: (text) => void socket.write(text) };
}

async function hears({ heard }: Client, text: string): Promise<void> {
  await expect.poll(() => heard.join('')).toContain(text);
}

beforeEach(async () => {
  received.length = 0;
  echo.listen(0, '127.0.0.1');
  await once(echo, 'listening');
  const { port } = echo.address() as { port: number };
  proxy = await startProxy({ host: '127.0.0.1', port });
});

afterEach(async () => {
  await proxy.stop();
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => echo.close(resolve));
});

describe('a proxy', () => {
  it('passes both ways, and passes on the end', async () => {
    const client = open();
    client.say('hello');
    await hears(client, 'hello');
    expect(proxy.connections).toBe(1);
    client.socket.end();
    expect(await client.closed).toBe('closed');
    await expect.poll(() => proxy.connections).toBe(0);
    expect(sockets.size).toBe(0);
  });

  it('passes much without losing any of it, also when the end follows at once', async () => {
    const client = open();
    const text = 'x'.repeat(3_000_000);
    client.socket.end(text);
    await client.closed;
    expect(client.heard.join('').length).toBe(text.length);
  });

  it('cut: resets connections, refuses new ones, and passes again afterwards', async () => {
    const client = open();
    client.say('hello');
    await hears(client, 'hello');
    proxy.cut();
    expect(await client.closed).toBe('ECONNRESET');
    const refused = open();
    refused.say('hello');
    expect(await refused.closed).toMatch(/ECONNRESET|EPIPE/);
    proxy.pass();
    const again = open();
    again.say('again');
    await hears(again, 'again');
    expect(received).toEqual(['hello', 'again']);
    again.socket.destroy();
  });

  it('hang: accepts, forwards nothing, and lets neither side know; what was held goes on later', async () => {
    const before = open();
    before.say('one ');
    await hears(before, 'one ');
    proxy.hang();
    const during = open();
    before.say('two ');
    during.say('three ');
    const killed = open();
    killed.say('four ');
    await once(killed.socket, 'connect');
    killed.socket.resetAndDestroy();
    expect(await within(300, Promise.race([before.closed, during.closed]))).toBe('no answer');
    expect(received).toEqual(['one ']);
    expect(sockets.size).toBe(1);
    proxy.pass();
    await hears(before, 'one two ');
    await hears(during, 'three ');
    before.socket.destroy();
    during.socket.destroy();
    await expect.poll(() => proxy.connections).toBe(0);
  });

  it('loseReplies: the request arrives, its answer is lost, and the connection is reset', async () => {
    const client = open();
    client.say('hello');
    await hears(client, 'hello');
    proxy.loseReplies();
    client.say('unanswered');
    expect(await client.closed).toBe('ECONNRESET');
    expect(received).toEqual(['hello', 'unanswered']);
    expect(client.heard).toEqual(['hello']);
    const other = open();
    other.say('also lost');
    expect(await other.closed).toBe('ECONNRESET');
    expect(proxy.lost).toBe(2);
  });

  it('loseReplies(1): passes again after one loss', async () => {
    proxy.loseReplies(1);
    const client = open();
    client.say('lost');
    expect(await client.closed).toBe('ECONNRESET');
    const other = open();
    other.say('heard');
    await hears(other, 'heard');
    expect(received).toEqual(['lost', 'heard']);
    other.socket.destroy();
  });

  it('delay: everything comes later, in order, also when the delay ends meanwhile', async () => {
    const client = open();
    client.say('0 ');
    await hears(client, '0 ');
    proxy.delay(100);
    const start = performance.now();
    client.say('1 ');
    await hears(client, '1 ');
    expect(performance.now() - start).toBeGreaterThanOrEqual(195);
    proxy.delay(5000);
    client.say('2 ');
    await new Promise((resolve) => setTimeout(resolve, 50));
    client.say('3 ');
    proxy.pass();
    client.say('4 ');
    await hears(client, '0 1 2 3 4 ');
    client.socket.destroy();
  });

  it('survives a target that is not there', async () => {
    for (const socket of sockets) socket.destroy();
    const { port } = echo.address() as { port: number };
    const lonely = await startProxy({ host: '127.0.0.1', port });
    await new Promise((resolve) => echo.close(resolve));
    const socket = connect({ host: lonely.host, port: lonely.port });
    socket.on('error', () => undefined);
    await new Promise((resolve) => socket.once('close', resolve));
    expect(lonely.connections).toBe(0);
    await lonely.stop();
    echo.listen(0, '127.0.0.1');
  });

  it('stop: resets what is open', async () => {
    const client = open();
    client.say('hello');
    await hears(client, 'hello');
    await proxy.stop();
    expect(await client.closed).toBe('ECONNRESET');
    await proxy.stop();
  });
});
