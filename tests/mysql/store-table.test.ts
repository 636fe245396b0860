/** The table, its rows, what is deleted, and what the store says of errors and of the server. */
import { createLocks, UnsupportedError } from 'holdfast';
import { createTable, createTableSql, type MysqlClient, mysqlStore } from 'holdfast/mysql';
import { NotExecutedError } from 'holdfast/protocol';
import { available, type MariadbServer, startMariadb } from 'holdfast-test-servers';
import type mysql from 'mysql2/promise';
import type { ResultSetHeader, RowDataPacket } from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { clearScene, until } from '../scene.js';
import { claimOf, mysql2Connection, mysql2Pool, releaseOf, renewOf, say, tableIn } from './store-scene.js';

describe.runIf(available('mariadb'))('the table in MariaDB', () => {
  let server: MariadbServer;
  let second: MariadbServer | undefined;
  let url: string;
  let pool: mysql.Pool;

  beforeAll(async () => {
    server = await startMariadb({ own: true });
    url = await server.createDatabase();
    await tableIn(url);
    pool = mysql2Pool(url);
  });
  afterAll(async () => {
    await clearScene();
    await Promise.all([server?.stop(), second?.stop()]);
  });

  async function rowOf(key: string): Promise<RowDataPacket | undefined> {
    const [rows] = await pool.query<RowDataPacket[]>('SELECT * FROM holdfast WHERE lock_key = ?', [key]);
    return rows[0];
  }

  it('uncontended, a claim, a renewal and a release are one statement each', async () => {
    const own = mysql2Pool(url, { connectionLimit: 1 });
    const sent: string[] = [];
    own.on('connection', (connection) => {
      const { query } = connection;
      Object.assign(connection, {
        query(...given: Parameters<typeof query>) {
          const text: unknown = given[0];
          sent.push(typeof text === 'string' ? text : String((text as { sql?: unknown }).sql));
          return Reflect.apply(query, connection, given);
        },
      });
    });
    const store = mysqlStore(own);
    const claim = claimOf('default/counted', 'a');
    // The first command of a process also asks for the time.
    await store.read('default/other');
    sent.length = 0;
    for (const command of [claim, renewOf({ ...claim, ttlMs: 60_000 }), releaseOf(claim)])
      await say(store, command);
    await say(store, claimOf('default/counted', 'a', { hold: { process: 'a', number: 2 } }));
    expect(sent.map((sql) => sql.split(' ')[0])).toEqual(['INSERT', 'UPDATE', 'UPDATE', 'UPDATE']);
  });

  it('createTable makes it once, and refuses nothing that is there', async () => {
    expect(await createTable(pool)).toEqual({ created: false });
    expect(await createTable(pool, { table: 'another' })).toEqual({ created: true });
    expect(await createTable(pool, { table: 'another' })).toEqual({ created: false });
    const name = new URL(url).pathname.slice(1);
    expect(await createTable(pool, { table: `${name}.another` })).toEqual({ created: false });
    expect(createTableSql({ table: 'a.b' })).toContain('CREATE TABLE IF NOT EXISTS `a`.`b`');
    for (const table of ['', 'a`b', 'a.b.c', 'a b', "x'y"]) {
      expect(() => mysqlStore(pool, { table })).toThrow(/The name of a table/);
    }
    expect(() => mysqlStore(pool, { tabel: 'x' } as object)).toThrow(/no option "tabel"/);
  });

  it('without the table, or without rights on it, advice', async () => {
    const store = mysqlStore(pool, { table: 'missing' });
    const refused = say(store, claimOf('default/k', 'a'));
    await expect(refused).rejects.toThrow(/`missing` is not there.*holdfast migrate/);
    await expect(refused).rejects.toThrow(UnsupportedError);
    const { findings } = await store.probe();
    expect(findings.map(({ text }) => text).join()).toMatch(/is not there yet/);
    await pool.query("CREATE USER 'reader'@'%' IDENTIFIED BY ''");
    await pool.query("GRANT SELECT ON holdfast TO 'reader'@'%'");
    const reader = mysqlStore(mysql2Pool(url, { user: 'reader' }));
    expect(await reader.read('default/nobody')).toBeNull();
    await expect(say(reader, claimOf('default/k', 'a'))).rejects.toThrow(/needs the rights SELECT, INSERT/);
  });

  it('a row that may be deleted is overwritten by a claim, with a higher token, and one that is held is not', async () => {
    const store = mysqlStore(pool);
    const claim = claimOf('default/old', 'a');
    const first = await say(store, claim);
    await say(store, releaseOf(claim));
    const version = (await rowOf('default/old'))?.version;
    await pool.query("UPDATE holdfast SET delete_after = 1 WHERE lock_key = 'default/old'");
    const second = await say(mysqlStore(pool), claimOf('default/old', 'b'));
    expect(second.kind).toBe('granted');
    expect((second as { token: number }).token).toBeGreaterThan((first as { token: number }).token);
    const row = await rowOf('default/old');
    expect(row?.version).not.toEqual(version);
    expect(Number(row?.delete_after)).toBeGreaterThan(Date.now());
    expect((await say(mysqlStore(pool), claimOf('default/old', 'c', { queue: false }))).kind).toBe('busy');
    expect((await rowOf('default/old'))?.version).toEqual(row?.version);
  });

  it('rows that may be deleted are deleted by later commands, and others stay', async () => {
    const database = await server.createDatabase();
    await tableIn(database);
    const own = mysql2Pool(database);
    const values = Array.from({ length: 450 }, (_, at) => `('old:${at}', 'v', '{}', 1)`);
    await own.query(`INSERT INTO holdfast VALUES ${values.join()}, ('kept', 'v', '{}', 9000000000000)`);
    // Clean-up is due at a random moment of the first half minute.
    const random = vi.spyOn(Math, 'random').mockReturnValue(0);
    const store = mysqlStore(own);
    random.mockRestore();
    let number = 0;
    const left = async (): Promise<number> => {
      number += 1;
      await say(store, claimOf('default/used', 'a', { hold: { process: 'a', number } }));
      const [rows] = await own.query<RowDataPacket[]>(
        "SELECT lock_key FROM holdfast WHERE lock_key LIKE 'old%'",
      );
      return rows.length;
    };
    await until(async () => (await left()) === 0, 'old rows are gone');
    const [rows] = await own.query<RowDataPacket[]>(
      'SELECT CAST(lock_key AS CHAR) AS name FROM holdfast ORDER BY 1',
    );
    expect(rows.map(({ name }) => name)).toEqual(['default/used', 'kept']);
  });

  it('a row that another transaction keeps locked: not executed, said so, and the next try is granted', async () => {
    const store = mysqlStore(
      mysql2Pool(url, { connectionLimit: 1 }).on('connection', (connection) => {
        connection.query('SET innodb_lock_wait_timeout = 1');
      }),
    );
    const claim = claimOf('default/locked', 'a');
    await say(store, claim);
    const other = await mysql2Connection(url);
    await other.query('START TRANSACTION');
    await other.query<ResultSetHeader>(
      "UPDATE holdfast SET delete_after = delete_after + 1 WHERE lock_key = 'default/locked'",
    );
    const renewal = renewOf({ ...claim, ttlMs: 60_000 });
    const refused = say(store, renewal);
    await expect(refused).rejects.toThrow(NotExecutedError);
    await other.query('ROLLBACK');
    expect((await say(store, renewal)).kind).toBe('renewed');
  });

  it('a pool without a free connection: not executed, and the connection that comes later is given back', async () => {
    const small = mysql2Pool(url, { connectionLimit: 1 });
    const store = mysqlStore(small);
    const held = await small.getConnection();
    await expect(store.read('default/k')).rejects.toThrow(/no free connection for 4000 ms/);
    held.release();
    expect(await store.read('default/k')).toBeNull();
  });

  it('a server that turns read-only: not executed; once it is not any more, work goes on', async () => {
    await pool.query("CREATE USER 'app'@'%' IDENTIFIED BY ''");
    await pool.query("GRANT ALL ON holdfast TO 'app'@'%'");
    const app = mysql2Pool(url, { user: 'app' });
    const locks = createLocks(mysqlStore(app));
    await (await locks.acquire('k')).release();
    await pool.query('SET GLOBAL read_only = 1');
    try {
      await expect(say(mysqlStore(app), claimOf('default/ro', 'a'))).rejects.toThrow(
        /is read-only and cannot store locks/,
      );
      const { findings } = await locks.probe();
      expect(findings.some(({ level, text }) => level === 'warning' && /read-only/.test(text))).toBe(true);
    } finally {
      await pool.query('SET GLOBAL read_only = 0');
    }
    await (await locks.acquire('k', { wait: '30s' })).release();
    await locks.close();
  });

  it('probe: a proxy that spreads statements over several servers is warned of', async () => {
    second = await startMariadb({ own: true });
    const other = mysql2Pool(await second.createDatabase());
    let count = 0;
    const proxy = { getConnection: () => (count++ % 2 === 0 ? pool : other).getConnection() };
    const textOf = async (client: MysqlClient): Promise<string> =>
      (await mysqlStore(client).probe()).findings.map(({ text }) => text).join();
    expect(await textOf(proxy)).toMatch(/Several servers answer .*connect to one server only/);
    expect(await textOf(pool)).not.toMatch(/Several servers/);
  });

  it('probe: the server, its time, and what it promises', async () => {
    const { server: name, now, findings } = await mysqlStore(pool).probe();
    expect(name).toMatch(/^MariaDB 1\d\.\d+/);
    expect(Math.abs(now - Date.now())).toBeLessThan(60_000);
    expect(findings.map(({ text }) => text).join('\n')).toMatch(/innodb_flush_log_at_trx_commit.*not 1/);
    await pool.query('CREATE TABLE fast (lock_key VARBINARY(9) PRIMARY KEY) ENGINE = MyISAM');
    const other = await mysqlStore(pool, { table: 'fast' }).probe();
    expect(other.findings.some(({ text }) => /MyISAM.*make it InnoDB/.test(text))).toBe(true);
  });
});
