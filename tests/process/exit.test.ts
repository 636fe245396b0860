/** What Holdfast does to the life of a process, in real processes on the built library. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const repository = fileURLToPath(new URL('../..', import.meta.url));

interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly output: string;
  readonly errors: string;
}

const prelude = `
  import { createLocks } from 'holdfast';
  import { memoryStore } from 'holdfast/memory';
  const store = memoryStore();
  const locks = createLocks(store);
  process.on('unhandledRejection', (error) => { console.log('UNHANDLED', error); process.exit(9); });
`;

/** Runs a module and ends it, by its id, should it not end by itself. */
function run(script: string, onOutput?: (kill: (signal: NodeJS.Signals) => void) => void): Promise<Ended> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', prelude + script], { cwd: repository });
  const limit = setTimeout(() => child.kill('SIGKILL'), 20_000);
  let output = '';
  let errors = '';
  child.stderr.on('data', (data) => {
    errors += data;
  });
  child.stdout.on('data', (data) => {
    const isFirst = output === '';
    output += data;
    if (isFirst) onOutput?.((signal) => child.kill(signal));
  });
  return new Promise((resolve) => {
    child.on('close', (code, signal) => {
      clearTimeout(limit);
      resolve({ code, signal, output, errors });
    });
  });
}

test('F21: a lease never released does not keep the process alive', async () => {
  const ended = await run(`await locks.acquire('k'); console.log('held');`);
  expect(ended).toMatchObject({ code: 0, output: 'held\n' });
});

test('waiting keeps the process alive until it has its answer', async () => {
  const ended = await run(`
    await locks.acquire('k', { ttl: 400, renew: false });
    const lease = await createLocks(store).acquire('k');
    console.log('mine', lease.held);
  `);
  expect(ended).toMatchObject({ code: 0, output: 'mine true\n' });
});

test('F21: on SIGTERM, releaseAll gives everything back before the process ends', async () => {
  const ended = await run(
    `
    await locks.acquire('a');
    await locks.acquire('b');
    process.once('SIGTERM', async () => {
      await locks.releaseAll();
      console.log('a', await locks.inspect('a'), 'b', await locks.inspect('b'));
      process.exit(0);
    });
    setInterval(() => undefined, 1000);
    console.log('ready');
  `,
    (kill) => kill('SIGTERM'),
  );
  expect(ended).toMatchObject({ code: 0, output: 'ready\na null b null\n' });
});

test('F8, P6, P16: a store that rejects everything never crashes the process; the lease is lost at its deadline', async () => {
  const ended = await run(`
    const lease = await locks.acquire('k', { ttl: 300 });
    store.apply = (commands) => commands.map(() => Promise.reject(new Error('down')));
    lease.signal.addEventListener('abort', () => console.log('lost', lease.state));
    await new Promise((resolve) => setTimeout(resolve, 1000));
  `);
  expect(ended).toMatchObject({ code: 0, output: 'lost lost\n', errors: '' });
});

test('F8: a store whose apply throws, and whose listen fails, never crashes the process', async () => {
  const ended = await run(`
    const broken = { ...memoryStore(), apply() { throw new Error('broken'); }, listen() { return Promise.reject(new Error('deaf')); } };
    const tried = await createLocks(broken).tryAcquire('k', { ttl: 500 }).catch((error) => error.code);
    console.log(tried);
  `);
  expect(ended).toMatchObject({ code: 0, output: 'store\n', errors: '' });
});

test('an awaited release whose reply is lost keeps the process alive until it is answered or given up', async () => {
  const ended = await run(`
    const lease = await locks.acquire('k', { ttl: 60000 });
    store.apply = (commands) => commands.map(() => new Promise(() => undefined));
    await lease.release().catch((error) => console.log(error.code));
  `);
  expect(ended).toMatchObject({ code: 0, output: 'store\n', errors: '' });
});

test('so do an acquire and a release, also when the process stood still before their first attempt counted as unanswered', async () => {
  const ended = await run(`
    const lease = await locks.acquire('k', { ttl: 60000 });
    store.apply = (commands) => commands.map(() => new Promise(() => undefined));
    const released = lease.release();
    const acquired = locks.acquire('other', { ttl: 60000, wait: 1000 });
    await null;
    const until = Date.now() + 600;
    while (Date.now() < until);
    for (const { reason } of await Promise.allSettled([released, acquired])) console.log(reason.code);
  `);
  expect(ended).toMatchObject({ code: 0, output: 'store\nstore\n', errors: '' });
});

test('F1: work that blocks the event loop past its ttl finds its lease lost at the first look', async () => {
  const ended = await run(`
    const lease = await locks.acquire('k', { ttl: 200 });
    const until = Date.now() + 400;
    while (Date.now() < until);
    queueMicrotask(() => console.log('held', lease.held, lease.signal.aborted));
    await null;
  `);
  expect(ended).toMatchObject({ code: 0, output: 'held false true\n' });
});
