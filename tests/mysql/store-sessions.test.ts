/** Sessions as the pools of applications may have them: none of their settings changes what the store does. */
import { createLocks, UnsupportedError } from 'holdfast';
import { type MysqlClient, mysqlStore } from 'holdfast/mysql';
import { NotExecutedError, type Store } from 'holdfast/protocol';
import { available, type MariadbServer, startMariadb } from 'holdfast-test-servers';
import type mysql from 'mysql2/promise';
import type { RowDataPacket } from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { clearScene } from '../scene.js';
import {
  claimOf,
  mariadbPool,
  mysql2Connection,
  mysql2Pool,
  releaseOf,
  renewOf,
  say,
  tableIn,
} from './store-scene.js';

const NAME = 'default/Käse "quoted" \\ \'x\' \u{1F512} ? :a';

describe.runIf(available('mariadb'))('sessions of MariaDB', () => {
  let server: MariadbServer;
  let url: string;
  let plain: mysql.Pool;

  beforeAll(async () => {
    server = await startMariadb({ settings: { 'max-connections': '400' } });
    url = await server.createDatabase();
    await tableIn(url);
    plain = mysql2Pool(url);
  });
  afterAll(async () => {
    await clearScene();
    await server?.stop();
  });

  /** A pool whose every session begins with these statements. */
  function sessions(...settings: readonly string[]): MysqlClient {
    const pool = mysql2Pool(url);
    pool.on('connection', (connection) => {
      for (const sql of settings) connection.query(sql);
    });
    return pool;
  }

  /** Claims, renews, refuses, lists and releases; another session sees each of it at once. */
  async function expectWhole(store: Store, prefix: string): Promise<void> {
    const other = mysqlStore(plain);
    const key = `${prefix}${NAME}`;
    const claim = claimOf(key, `a-${prefix}`, { metadata: '{"a":"\\\\ \' \\" \u00e4"}' });
    const granted = await say(store, claim);
    expect(granted.kind).toBe('granted');
    const { now } = granted as { now: number };
    expect(Math.abs(now - Date.now())).toBeLessThan(60_000);
    expect(await other.read(key)).toMatchObject({
      holders: [{ owner: `a-${prefix}`, metadata: claim.metadata }],
    });
    expect((await say(other, claimOf(key, `b-${prefix}`, { queue: false }))).kind).toBe('busy');
    expect((await say(store, claimOf(key.toUpperCase(), `c-${prefix}`))).kind).toBe('granted');
    expect((await say(store, claimOf(`${key} `, `d-${prefix}`))).kind).toBe('granted');
    expect((await say(store, renewOf(claim))).kind).toBe('renewed');
    const listed: string[] = [];
    for await (const { key: one } of store.list({ prefix: key })) listed.push(one);
    expect(listed).toEqual([key, `${key} `]);
    expect((await say(store, releaseOf(claim))).kind).toBe('released');
    expect(await other.read(key)).toBeNull();
    const next = await say(other, claimOf(key, `e-${prefix}`));
    expect(next.kind).toBe('granted');
    expect((await say(store, claimOf(key, `f-${prefix}`, { queue: false }))).kind).toBe('busy');
  }

  const SETTINGS: Readonly<Record<string, readonly string[]>> = {
    'in another time zone': ["SET time_zone = '-11:30'"],
    'with ANSI_QUOTES, NO_BACKSLASH_ESCAPES and strict': [
      "SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,STRICT_ALL_TABLES,NO_ZERO_DATE,ONLY_FULL_GROUP_BY'",
    ],
    'with no mode at all': ["SET sql_mode = ''"],
    'with simultaneous assignment': ["SET sql_mode = 'SIMULTANEOUS_ASSIGNMENT,NO_UNSIGNED_SUBTRACTION'"],
    'with READ UNCOMMITTED': ['SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED'],
    'with SERIALIZABLE': ['SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE'],
    'without autocommit': ['SET autocommit = 0'],
    'without autocommit, with SERIALIZABLE': [
      'SET autocommit = 0',
      'SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE',
    ],
    'in latin1': ['SET NAMES latin1'],
    'with another collation': [
      'SET NAMES utf8mb4 COLLATE utf8mb4_general_ci',
      'SET collation_connection = utf8mb4_unicode_ci',
    ],
  };

  it.each(Object.entries(SETTINGS))('%s: the same locks', async (name, settings) => {
    await expectWhole(mysqlStore(sessions(...settings)), `${name}/`);
  });

  const POOLS: Readonly<Record<string, () => MysqlClient | Promise<MysqlClient>>> = {
    'mysql2 with big numbers as text': () =>
      mysql2Pool(url, { supportBigNumbers: true, bigNumberStrings: true }),
    'mysql2 with rows as arrays and nested tables': () =>
      mysql2Pool(url, { rowsAsArray: true, nestTables: true }),
    'mysql2 that casts everything to text': () =>
      mysql2Pool(url, { typeCast: (field) => `<${field.string()}>` }),
    'mysql2 that counts changed rows': () => mysql2Pool(url, { flags: ['-FOUND_ROWS'] }),
    'mysql2 with named placeholders and several statements': () =>
      mysql2Pool(url, { namedPlaceholders: true, multipleStatements: true }),
    'mariadb as it is': () => mariadbPool(url),
    'mariadb with numbers and rows as arrays': () =>
      mariadbPool(url, {
        insertIdAsNumber: true,
        bigIntAsNumber: true,
        rowsAsArray: true,
        metaAsArray: true,
      }),
    'mariadb that casts everything to null': () => mariadbPool(url, { typeCast: () => null }),
    'mariadb that leaves sessions as they are': () => mariadbPool(url, { noControlAfterUse: true }),
    'one connection of mysql2': () => mysql2Connection(url),
  };

  it.each(Object.entries(POOLS))('a pool of %s: the same locks', async (name, open) => {
    await expectWhole(mysqlStore(await open()), `${name}/`);
  });

  it('without autocommit a grant is committed before it is answered, and a session left in a transaction hides nothing', async () => {
    const pool = mysql2Pool(url, { connectionLimit: 1 });
    pool.on('connection', (connection) => connection.query('SET autocommit = 0'));
    const store = mysqlStore(pool);
    const other = mysqlStore(plain);
    expect((await say(store, claimOf('default/left', 'a'))).kind).toBe('granted');
    expect((await other.read('default/left'))?.holders).toHaveLength(1);
    // The application reads in a transaction of its own, and does not end it.
    await pool.query('SELECT COUNT(*) FROM holdfast');
    expect((await say(other, releaseOf(claimOf('default/left', 'a')))).kind).toBe('released');
    expect(await store.read('default/left')).toBeNull();
    const [rows] = await plain.query<RowDataPacket[]>(
      'SELECT COUNT(*) AS open FROM information_schema.INNODB_TRX',
    );
    expect(rows[0]?.open).toBe(0);
  });

  it('a connection without autocommit, or inside a transaction, is refused with advice', async () => {
    const off = await mysql2Connection(url);
    await off.query('SET autocommit = 0');
    await expect(say(mysqlStore(off), claimOf('default/off', 'a'))).rejects.toThrow(
      /autocommit off.*Give mysqlStore a pool/,
    );
    await off.query('ROLLBACK');
    expect(await mysqlStore(plain).read('default/off')).toBeNull();
    const inside = await mysql2Connection(url);
    await inside.query('START TRANSACTION');
    const refused = say(mysqlStore(inside), claimOf('default/inside', 'a'));
    // It may be committed later, or not: nobody can say that it was not executed.
    await expect(refused).rejects.not.toThrow(UnsupportedError);
    await expect(refused).rejects.toThrow(/inside a transaction/);
    await inside.query('ROLLBACK');
    expect(await mysqlStore(plain).read('default/inside')).toBeNull();
  });

  it('while a statement on a single connection hangs, further commands fail at once, unsent; after it they work', async () => {
    const own = await server.createDatabase();
    await tableIn(own);
    const blocker = await mysql2Connection(own);
    const store = mysqlStore(await mysql2Connection(own));
    await blocker.query('LOCK TABLES holdfast WRITE');
    await expect(store.read('default/k')).rejects.toThrow(/does not answer/);
    const refused = say(store, claimOf('default/k', 'a'));
    await expect(refused).rejects.toThrow(/hangs.*give mysqlStore a pool/);
    await expect(refused).rejects.toBeInstanceOf(NotExecutedError);
    await blocker.query('UNLOCK TABLES');
    await vi.waitFor(() => store.read('default/k'), { timeout: 60_000, interval: 20 });
    expect((await say(store, claimOf('default/k', 'a'))).kind).toBe('granted');
  });

  it('a pool of callbacks only is refused with advice', async () => {
    const callbacks = { getConnection: () => undefined } as unknown as MysqlClient;
    await expect(mysqlStore(callbacks).read('default/x')).rejects.toThrow(/instead of mariadb\/callback/);
    expect(() => mysqlStore({} as unknown as MysqlClient)).toThrow(
      /a pool or a connection of mysql2 or mariadb/,
    );
  });

  it('the longest key, and metadata of the greatest length, are stored whole', async () => {
    const locks = createLocks(mysqlStore(plain), { namespace: 'n'.repeat(64) });
    const name = 'ä'.repeat(256);
    const metadata = { text: '\\'.repeat(2_000) };
    const lease = await locks.acquire(name, { metadata });
    expect((await locks.inspect(name))?.holders[0]?.metadata).toEqual(metadata);
    await lease.release();
    await locks.close();
  });
});
