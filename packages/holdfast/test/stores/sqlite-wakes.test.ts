import { execFileSync, spawn } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { note } from '../../src/stores/sqlite/process-table.js';
import { wakeFiles } from '../../src/stores/sqlite/wake-files.js';
import {
  ask,
  claimOf,
  clearScene,
  connection,
  freshFile,
  releaseOf,
  ScriptedTable,
  storeAt,
} from './sqlite-scene.js';

afterEach(clearScene);

function fileWithStore(): string {
  const file = freshFile();
  storeAt(file);
  return file;
}

it('F32: a waiter of another store is told its turn through a file, the holder that somebody waits', async () => {
  const file = freshFile();
  const [one, two] = [storeAt(file), storeAt(file)];
  const heard: string[] = [];
  await one.listen?.('inbox-1', (key, why) => heard.push(`1 ${key} ${why}`));
  await two.listen?.('inbox-2', (key, why) => heard.push(`2 ${key} ${why}`));
  const held = claimOf('job "ü\n1"', 'a', 1, { inbox: 'inbox-1' });
  await ask(one, held);
  await ask(two, claimOf('job "ü\n1"', 'b', 1, { inbox: 'inbox-2' }));
  await expect.poll(() => heard).toEqual(['1 job "ü\n1" waiting']);
  await ask(one, releaseOf(held));
  await expect.poll(() => heard).toEqual(['1 job "ü\n1" waiting', '2 job "ü\n1" turn']);
});

it('within one store no file is written', async () => {
  const file = freshFile();
  const store = storeAt(file);
  const heard: string[] = [];
  await store.listen?.('inbox', (_, why) => heard.push(why));
  const before = readFileSync(join(`${file}-wake`, 'inbox'), 'utf8');
  await Promise.all(store.apply([claimOf('k', 'a', 1, { inbox: 'inbox' }), claimOf('k', 'b')]));
  expect(heard).toEqual(['waiting']);
  expect(readFileSync(join(`${file}-wake`, 'inbox'), 'utf8')).toBe(before);
});

it('in a memory database wake-ups arrive too, and no folder is made', async () => {
  const store = storeAt(':memory:');
  const heard: string[] = [];
  const stop = await store.listen?.('inbox', (_, why) => heard.push(why));
  await Promise.all(store.apply([claimOf('k', 'a', 1, { inbox: 'inbox' }), claimOf('k', 'b')]));
  expect(heard).toEqual(['waiting']);
  await stop?.();
  expect(existsSync(':memory:-wake')).toBe(false);
});

it('stopped, an inbox gets no more wake-ups and its file is gone; stopping twice is fine', async () => {
  const file = freshFile();
  const [one, two] = [storeAt(file), storeAt(file)];
  let heard = 0;
  const stop = await one.listen?.('inbox', () => {
    heard += 1;
  });
  await ask(one, claimOf('k', 'a', 1, { inbox: 'inbox' }));
  await stop?.();
  await stop?.();
  await ask(two, claimOf('k', 'b'));
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(heard).toBe(0);
  expect(readdirSync(`${file}-wake`)).toEqual([]);
});

it('many wake-ups at once all arrive, and the file stays short', async () => {
  const file = fileWithStore();
  const files = wakeFiles(file, new ScriptedTable());
  const keys: string[] = [];
  const stop = files.listen('inbox', ({ key }) => keys.push(key));
  const sender = wakeFiles(file, new ScriptedTable());
  for (let round = 0; round < 60; round++) {
    sender.send(
      'inbox',
      Array.from({ length: 50 }, (_, at) => ({ key: `${round}-${at}`, why: 'turn' })),
    );
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  await expect.poll(() => keys.at(-1)).toBe('59-49');
  expect(statSync(join(`${file}-wake`, 'inbox')).size).toBeLessThan(40_000);
  // A hint may be lost while the file is emptied; not more than a few are.
  expect(keys.length).toBeGreaterThan(2_800);
  stop();
});

it('a listener that is stopped does not make its file grow without end', () => {
  const file = fileWithStore();
  const files = wakeFiles(file, new ScriptedTable());
  const stop = files.listen('inbox', () => undefined);
  // Nothing is read while this loop runs.
  for (let count = 0; count < 5_000; count++) files.send('inbox', [{ key: 'x'.repeat(100), why: 'waiting' }]);
  expect(statSync(join(`${file}-wake`, 'inbox')).size).toBeLessThan(70_000);
  stop();
});

it.each(['../out', 'a/b', '.', '..', '', 'sp ace', 'nul\0', '~', 'é'])(
  'F17: an inbox called %j is a file in the folder and nowhere else',
  async (name) => {
    const file = fileWithStore();
    const files = wakeFiles(file, new ScriptedTable());
    const heard: string[] = [];
    const stop = files.listen(name, ({ key }) => heard.push(key));
    files.send(name, [{ key: 'k', why: 'turn' }]);
    await expect.poll(() => heard).toEqual(['k']);
    expect(readdirSync(`${file}-wake`)).toHaveLength(1);
    stop();
  },
);

it('an inbox with too long a name cannot be listened to, and what is sent to it is lost', () => {
  const file = fileWithStore();
  const files = wakeFiles(file, new ScriptedTable());
  expect(() => files.listen('x'.repeat(300), () => undefined)).toThrow(/ENAMETOOLONG/);
  files.send('x'.repeat(300), [{ key: 'k', why: 'turn' }]);
  expect(readdirSync(`${file}-wake`)).toEqual([]);
  expect(files.error()).toMatchObject({ code: 'ENAMETOOLONG' });
});

it('without the folder, without a listener, with nonsense in the file: wake-ups are lost and nothing throws', async () => {
  const file = freshFile();
  const [one, two] = [storeAt(file), storeAt(file)];
  await ask(one, claimOf('k', 'a', 1, { inbox: 'nobody-there' }));
  expect((await ask(two, claimOf('k', 'b'))).kind).toBe('busy');
  const heard: string[] = [];
  const stop = await one.listen?.('inbox', (key) => heard.push(key));
  appendFileSync(join(`${file}-wake`, 'inbox'), 'nonsense\nturn {broken\n');
  await new Promise((resolve) => setTimeout(resolve, 50));
  appendFileSync(join(`${file}-wake`, 'inbox'), 'turn "good"\n');
  await expect.poll(() => heard).toEqual(['good']);
  await stop?.();
  rmSync(`${file}-wake`, { recursive: true });
  expect((await ask(two, claimOf('k', 'b'))).kind).toBe('busy');
});

it('a folder deleted in use is made again', async () => {
  const file = freshFile();
  const [one, two] = [storeAt(file), storeAt(file)];
  const heard: string[] = [];
  const stop = await one.listen?.('inbox', (key) => heard.push(key));
  await ask(one, claimOf('k', 'a', 1, { inbox: 'inbox' }));
  rmSync(`${file}-wake`, { recursive: true });
  await expect.poll(() => existsSync(join(`${file}-wake`, 'inbox'))).toBe(true);
  await ask(two, claimOf('k', 'b'));
  await expect.poll(() => heard).toEqual(['k']);
  await stop?.();
  expect(readdirSync(`${file}-wake`)).toEqual([]);
});

it('where the folder cannot be made, waiting works without wake-ups, and probe says so', async () => {
  const file = freshFile();
  const store = storeAt(file);
  writeFileSync(`${file}-wake`, 'in the way');
  await expect(store.listen?.('inbox', () => undefined)).rejects.toThrow(/EEXIST/);
  expect((await ask(store, claimOf('k', 'a', 1, { inbox: 'elsewhere' }))).kind).toBe('granted');
  expect((await ask(store, claimOf('k', 'b'))).kind).toBe('busy');
  const { findings } = await store.probe();
  expect(findings).toContainEqual({ level: 'warning', text: expect.stringMatching(/Push does not work/) });
});

it('files that dead processes left are cleared away, those of the living stay', () => {
  const file = fileWithStore();
  const table = new ScriptedTable();
  const living = wakeFiles(file, table).listen('living', () => undefined);
  const leave = (name: string, whose: object): void =>
    writeFileSync(join(`${file}-wake`, name), `${JSON.stringify(whose)}\n`);
  const here = note(process.pid, table);
  leave('dead', { ...here, pid: 4_000_001 });
  leave('reused', { ...here, started: '0' });
  leave('before-the-boot', { ...here, boot: 'boot-0' });
  leave('another-container', { ...here, namespace: 'pid:[2]', pid: 4_000_001 });
  writeFileSync(join(`${file}-wake`, 'just-made'), '');
  const stop = wakeFiles(file, table).listen('new', () => undefined);
  expect(readdirSync(`${file}-wake`).sort()).toEqual(['another-container', 'just-made', 'living', 'new']);
  stop();
  living();
});

it('whoever may use the database may use the folder', () => {
  const file = fileWithStore();
  chmodSync(file, 0o660);
  const stop = wakeFiles(file, new ScriptedTable()).listen('inbox', () => undefined);
  expect(statSync(`${file}-wake`).mode & 0o777).toBe(0o770);
  expect(statSync(join(`${file}-wake`, 'inbox')).mode & 0o777).toBe(0o660);
  stop();
});

it('listening does not keep a process alive', () => {
  const dist = new URL('../../dist/stores/sqlite/index.js', import.meta.url).href;
  const script = `const { sqliteStore } = await import(${JSON.stringify(dist)});
    await sqliteStore(process.argv[1]).listen('inbox', () => undefined); console.log('over');`;
  const text = execFileSync(process.execPath, ['--input-type=module', '-e', script, freshFile()], {
    timeout: 20_000,
  });
  expect(text.toString()).toBe('over\n');
});

it('a wake-up from another process arrives', async () => {
  const file = freshFile();
  const store = storeAt(file);
  const heard: string[] = [];
  await store.listen?.('inbox', (key, why) => heard.push(`${key} ${why}`));
  await ask(store, claimOf('k', 'a', 1, { inbox: 'inbox' }));
  const dist = new URL('../../dist/stores/sqlite/index.js', import.meta.url).href;
  const script = `const { sqliteStore } = await import(${JSON.stringify(dist)});
    await sqliteStore(process.argv[1]).apply([JSON.parse(process.argv[2])])[0];`;
  const claim = JSON.stringify(claimOf('k', 'b'));
  const child = spawn(process.execPath, ['--input-type=module', '-e', script, file, claim], {
    stdio: 'inherit',
  });
  await expect.poll(() => heard).toEqual(['k waiting']);
  child.kill();
  expect(connection(file).prepare('SELECT count(*) AS n FROM holdfast_processes').get()).toEqual({ n: 2 });
});
