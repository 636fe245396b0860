/** What the HTTP store does to the life of a process, in real processes on the built library. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { httpStore } from 'holdfast/http';
import { afterEach, expect, it } from 'vitest';
import { atTheEnd, claimOf, clearScene, fakeService, ServiceProcess, say, until } from './scene.js';

afterEach(clearScene);

const repository = fileURLToPath(new URL('../..', import.meta.url));

/** Runs a module, and ends it, by its id, should it not end by itself. */
function run(script: string): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { cwd: repository });
  const limit = setTimeout(() => child.kill('SIGKILL'), 25_000);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (data) => {
      output += data;
    });
  }
  return new Promise((resolve) => {
    child.on('close', (code) => {
      clearTimeout(limit);
      resolve({ code, output });
    });
  });
}

const prelude = (url: string): string => `
  import { createLocks } from 'holdfast';
  import { httpStore } from 'holdfast/http';
  process.on('unhandledRejection', (error) => { console.log('UNHANDLED', error); process.exit(9); });
  const store = httpStore({ url: '${url}' });
  const locks = createLocks(store);
`;

it('F21: a process ends by itself once its locks are closed, streams and kept connections and all', async () => {
  const service = await new ServiceProcess('memory').start();
  const ended = await run(`${prelude(service.url)}
    await locks.withLock('k', () => undefined);
    const lease = await locks.acquire('k');
    const waiting = createLocks(httpStore({ url: '${service.url}' }));
    console.log(await waiting.tryAcquire('k', { wait: 300 }));
    await lease.release();
    await waiting.close();
    await locks.close({ drain: 0 });
    console.log('closed', process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length);
  `);
  expect(ended).toEqual({ code: 0, output: 'null\nclosed 0\n' });
}, 60_000);

it('F8: also with a service that hangs, and with one that is gone', async () => {
  const hung = await fakeService(() => undefined);
  const ended = await run(`${prelude(hung.url)}
    const error = await locks.acquire('k', { wait: 300 }).catch((error) => error);
    console.log(error.code);
    await locks.close({ drain: 0 }).catch((error) => console.log(error.code));
    console.log('closed');
  `);
  expect(ended.output).toMatch(/^store\n(?:store\n)?closed\n$/);
  expect(ended.code).toBe(0);
  hung.server.closeAllConnections();
  hung.server.close();
  const alone = await run(`${prelude(hung.url)}
    const error = await locks.acquire('k', { wait: 300 }).catch((error) => error);
    console.log(error.code);
    await locks.close({ drain: 0 }).catch((error) => console.log(error.code));
  `);
  expect(alone.output).toMatch(/^store\n(?:store\n)?$/);
  expect(alone.code).toBe(0);
}, 90_000);

it('closing ends every stream and every request in flight, at the other side too', async () => {
  let open = 0;
  const fake = await fakeService((request, response) => {
    open += 1;
    response.on('close', () => {
      open -= 1;
    });
    if (!request.url?.endsWith('/events')) return;
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('event: ready\ndata: {}\n\n');
  });
  const store = httpStore({ url: fake.url });
  atTheEnd(() => store.close());
  const hearing: boolean[] = [];
  await store.listen?.(
    'an-inbox-of-this-test',
    () => undefined,
    (hears) => hearing.push(hears),
  );
  const unanswered = say(store, claimOf('k')).catch((error: unknown) => error);
  await until(() => open === 2, 'both are open');
  await store.close();
  expect(await unanswered).toMatchObject({ message: 'The store was closed before the service answered.' });
  await until(() => open === 0, 'both are closed');
  expect(hearing).toEqual([]);
  await expect(say(store, claimOf('k'))).rejects.toMatchObject({ code: 'unsupported' });
  await expect(store.listen?.('an-inbox-of-this-test', () => undefined)).rejects.toMatchObject({
    code: 'unsupported',
  });
  await expect(store.read('k')).rejects.toMatchObject({ code: 'unsupported' });
  await expect(store.probe()).rejects.toMatchObject({ code: 'unsupported' });
});

it('closing ends a request that waits for a JWT that never comes', async () => {
  const store = httpStore({ url: 'http://127.0.0.1:1', jwt: () => new Promise<never>(() => undefined) });
  const unanswered = store.read('k').catch((error: unknown) => error);
  await store.close();
  expect(await unanswered).toMatchObject({ message: 'The store was closed before the service answered.' });
});
