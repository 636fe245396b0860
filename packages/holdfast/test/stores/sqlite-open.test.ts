import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import { InvalidArgumentError, UnsupportedError } from '../../src/protocol/index.js';
import {
  loadDriver,
  loadPackage,
  type OwnDatabase,
  resultCode,
  SQLITE_BUSY,
} from '../../src/stores/sqlite/database.js';
import { sqliteStore } from '../../src/stores/sqlite/index.js';
import {
  ask,
  claimOf,
  clearScene,
  connection,
  Driver,
  freshFile,
  freshFolder,
  storeAt,
} from './sqlite-scene.js';

afterEach(clearScene);

/** Not in every container. */
const canMount = spawnSync('unshare', ['-rm', 'mount', '--bind', '.', '.']).status === 0;

async function usedFile(): Promise<string> {
  const file = freshFile();
  const store = sqliteStore(file);
  await Promise.all(store.apply(Array.from({ length: 200 }, (_, at) => claimOf(`key-${at}`, 'a', at + 1))));
  await store.close();
  // So that all of it is in the file itself.
  connection(file).exec('PRAGMA wal_checkpoint(TRUNCATE)');
  return file;
}

/** Opening fails with these words, and leaves the file as it was. */
function expectRefused(
  file: string,
  words: RegExp,
  kind: new (text: string) => Error = UnsupportedError,
): void {
  const before = readFileSync(file);
  expect(() => sqliteStore(file)).toThrow(words);
  expect(() => sqliteStore(file)).toThrow(kind);
  expect(readFileSync(file).equals(before)).toBe(true);
}

it('a database of another version is refused with a clear error, byte for byte as it was', async () => {
  const file = await usedFile();
  const database = new Driver(file);
  database.exec('UPDATE holdfast_schema SET version = 2');
  database.close();
  expectRefused(file, /tables of version 2.*Nothing was changed/);
});

it('a table of our name that is not ours is refused, and the file stays as it was; a fence table is no such table', async () => {
  const file = freshFile();
  const database = new Driver(file);
  database.exec('CREATE TABLE holdfast_records (mine)');
  database.close();
  expectRefused(file, /a table "holdfast_records" that this library did not make/);
  const guarded = freshFile();
  const other = new Driver(guarded);
  other.exec('CREATE TABLE holdfast_fences (resource, token)');
  other.close();
  await sqliteStore(guarded).close();
});

it('a database of another version given as a connection is refused, and not even switched to WAL', () => {
  const file = freshFile();
  const database = connection(file);
  database.exec('CREATE TABLE holdfast_schema (version); INSERT INTO holdfast_schema VALUES (7)');
  const before = readFileSync(file);
  expect(() => sqliteStore(database)).toThrow(/tables of version 7/);
  expect(readFileSync(file).equals(before)).toBe(true);
});

it('a database of another version whose last writer was killed keeps its log, too', async () => {
  const file = freshFile();
  const writer = connection(file);
  const store = sqliteStore(writer);
  await ask(store, claimOf('k', 'a'));
  writer.exec('UPDATE holdfast_schema SET version = 2');
  const copy = freshFile();
  writeFileSync(copy, readFileSync(file));
  writeFileSync(`${copy}-wal`, readFileSync(`${file}-wal`));
  const log = readFileSync(`${copy}-wal`);
  expectRefused(copy, /tables of version 2/);
  expect(readFileSync(`${copy}-wal`).equals(log)).toBe(true);
});

it('a file that is no database is refused', () => {
  const file = freshFile();
  for (const text of ['hello', 'not a database\n'.repeat(1_000)]) {
    writeFileSync(file, text);
    expectRefused(file, /not an SQLite database, or a damaged one/);
  }
});

it('a damaged database is refused', async () => {
  const cut = await usedFile();
  truncateSync(cut, Math.floor(statSync(cut).size / 2));
  expectRefused(cut, /damaged/);
  const scribbled = await usedFile();
  const bytes = readFileSync(scribbled);
  writeFileSync(
    scribbled,
    bytes.fill(0xa5, Math.floor(bytes.length / 3), Math.floor((bytes.length * 2) / 3)),
  );
  expectRefused(scribbled, /damaged/);
});

it('a folder, an empty path and a device are refused as mistakes of the caller', () => {
  expect(() => sqliteStore(freshFolder())).toThrow(InvalidArgumentError);
  expect(() => sqliteStore(freshFolder())).toThrow(/is a folder/);
  expect(() => sqliteStore('')).toThrow(InvalidArgumentError);
  expect(() => sqliteStore('/dev/null')).toThrow(/not a regular file/);
});

it('a read-only file is refused, even to root', async () => {
  const file = await usedFile();
  chmodSync(file, 0o444);
  expectRefused(file, /read-only/);
});

it('a read-only connection is refused', async () => {
  const file = await usedFile();
  const database = new Driver(file, { readOnly: true });
  expect(() => sqliteStore(database)).toThrow(/read-only/);
  database.close();
});

it.skipIf(process.getuid?.() !== 0)('a file of another user, readable only, is refused', async () => {
  const file = await usedFile();
  chmodSync(file, 0o644);
  chmodSync(dirname(file), 0o755);
  const script = `
    const { DatabaseSync } = require('@photostructure/sqlite');
    process.setgid(65534); process.setuid(65534);
    import(process.argv[1]).then(({ sqliteStore }) => {
      try { sqliteStore(new DatabaseSync(process.argv[2])); } catch (error) { console.log(error.name, error.message); }
    });`;
  const dist = join(import.meta.dirname, '../../dist/stores/sqlite/index.js');
  const { stdout, stderr } = spawnSync(process.execPath, ['-e', script, dist, file], { encoding: 'utf8' });
  expect(stdout, stderr).toMatch(/^UnsupportedError .*(read-only|cannot be opened)/);
});

it.runIf(existsSync('/proc/self'))('a folder that can never be made is an error at once', () => {
  expect(() => sqliteStore('/proc/nowhere/locks.db')).toThrow(/cannot be opened/);
});

it('missing folders are made, for this user alone', async () => {
  const folder = join(freshFolder(), 'a', 'b');
  const store = sqliteStore(join(folder, 'locks.db'));
  await store.close();
  expect(statSync(folder).mode & 0o777).toBe(0o700);
});

it('a path through a file is refused', () => {
  const file = freshFile();
  writeFileSync(file, '');
  expect(() => sqliteStore(join(file, 'locks.db'))).toThrow(/cannot be opened/);
});

it('an empty file becomes a database', async () => {
  const file = freshFile();
  writeFileSync(file, '');
  const store = sqliteStore(file);
  expect((await ask(store, claimOf('k', 'a'))).kind).toBe('granted');
  await store.close();
});

it('what a killed process left half-written is taken back, and the file opens', async () => {
  const file = freshFile();
  const script = `const { DatabaseSync } = require('@photostructure/sqlite');
    const database = new DatabaseSync(process.argv[1]);
    database.exec('CREATE TABLE orders (text); PRAGMA cache_size = 1; BEGIN');
    const insert = database.prepare('INSERT INTO orders VALUES (?)');
    for (let count = 0; count < 500; count++) insert.run('x'.repeat(1000));
    process.kill(process.pid, 'SIGKILL');`;
  spawnSync(process.execPath, ['-e', script, file]);
  expect(statSync(`${file}-journal`).size).toBeGreaterThan(0);
  const store = sqliteStore(file);
  expect((await ask(store, claimOf('k', 'a'))).kind).toBe('granted');
  await store.close();
  expect(connection(file).prepare('SELECT count(*) AS n FROM orders').get()).toEqual({ n: 0 });
});

it('P6: after a failure at opening, the next attempt starts afresh', async () => {
  const folder = freshFolder();
  const file = join(folder, 'locks.db');
  mkdirSync(file);
  expect(() => sqliteStore(file)).toThrow(/folder/);
  const { rmdirSync } = await import('node:fs');
  rmdirSync(file);
  const store = sqliteStore(file);
  expect((await ask(store, claimOf('k', 'a'))).kind).toBe('granted');
  await store.close();
});

it('a database with tables of its owner keeps them', async () => {
  const file = freshFile();
  const database = connection(file);
  database.exec('CREATE TABLE orders (id); INSERT INTO orders VALUES (7); PRAGMA user_version = 12');
  const store = sqliteStore(database);
  await ask(store, claimOf('k', 'a'));
  expect(database.prepare('SELECT id FROM orders').get()).toEqual({ id: 7 });
  expect(database.prepare('PRAGMA user_version').get()).toEqual({ user_version: 12 });
});

it('by whatever name it is opened, it is one store, wake-ups included', async () => {
  const file = freshFile();
  const store = storeAt(file);
  const link = join(freshFolder(), 'link.db');
  symlinkSync(file, link);
  const other = sqliteStore(link);
  let heard = 0;
  await store.listen?.('inbox', () => {
    heard += 1;
  });
  await ask(store, claimOf('k', 'a', 1, { inbox: 'inbox' }));
  expect((await ask(other, claimOf('k', 'b'))).kind).toBe('busy');
  await expect.poll(() => heard).toBe(1);
  await other.close();
});

it('a file with a second hard link is refused, by each of its names: they would be two stores', async () => {
  const file = freshFile();
  await storeAt(file).close();
  const link = join(dirname(file), 'link.db');
  linkSync(file, link);
  for (const name of [file, link]) {
    expect(() => sqliteStore(name)).toThrow(UnsupportedError);
    expect(() => sqliteStore(connection(name))).toThrow(/has a second name, a hard link/);
  }
  unlinkSync(link);
  await ask(storeAt(file), claimOf('k', 'a'));
});

it.runIf(canMount)(
  'a file that is a mount by itself is refused; in a mounted folder it is one store',
  async () => {
    const [here, there] = [freshFolder(), freshFolder()];
    const file = join(here, 'locks with spaces.db');
    await ask(storeAt(file), claimOf('k', 'a'));
    const alone = join(freshFolder(), 'locks with spaces.db');
    writeFileSync(alone, '');
    const sqlite = fileURLToPath(new URL('../../dist/stores/sqlite/index.js', import.meta.url));
    const script = `
    import { sqliteStore } from ${JSON.stringify(sqlite)};
    try { sqliteStore(${JSON.stringify(alone)}); } catch (error) { console.log(error.message); }
    const store = sqliteStore(${JSON.stringify(join(there, 'locks with spaces.db'))});
    console.log((await store.read('k')).holders.length, 'holder');
    await store.close();`;
    const mounts = `mount --bind "$1" "$2" && mount --bind "$3" "$4" && exec "$5" --input-type=module -e "$6"`;
    const args = [file, alone, here, there, process.execPath, script];
    const output = execFileSync('unshare', ['-rm', 'sh', '-c', mounts, 'sh', ...args], { encoding: 'utf8' });
    expect(output).toMatch(/is mounted by itself, as by .*mount its folder instead\.\n1 holder\n$/s);
  },
);

it('a missing package is one line with the command that installs it', () => {
  const missing = (): never => {
    throw new Error("Cannot find module '@photostructure/sqlite'");
  };
  expect(() => loadPackage(missing)).toThrow(/npm install @photostructure\/sqlite$/);
  expect(() => loadPackage(missing)).toThrow(UnsupportedError);
  expect(typeof loadDriver()).toBe('function');
});

it('an error of SQLite that has no result code, as some have on Deno, is known by its message', () => {
  const bare = (message: string): Error => Object.assign(new Error(message), { code: 'ERR_SQLITE_ERROR' });
  expect(resultCode(bare('database is locked'))).toBe(SQLITE_BUSY);
  expect(resultCode(bare('no such table: x'))).toBe(1);
  expect(resultCode(new Error('database is locked'))).toBeNull();
});

it.each([{ readBigInts: true }, { returnArrays: true }])(
  'a connection of the user with %o shares locks with all others',
  async (options) => {
    const file = freshFile();
    const database = new (Driver as new (path: string, options: object) => OwnDatabase)(file, options);
    const store = sqliteStore(database);
    const other = storeAt(file);
    expect((await ask(store, claimOf('key', 'a', 1))).kind).toBe('granted');
    expect((await ask(other, claimOf('key', 'b', 1))).kind).toBe('busy');
    expect(await store.read('key')).toMatchObject({ holders: [{ owner: 'a' }], waiters: [{ owner: 'b' }] });
    expect((await ask(store, claimOf('key', 'c', 1))).kind).toBe('busy');
    expect((await store.probe()).server).toContain(file);
    await store.close();
    database.close();
  },
);
