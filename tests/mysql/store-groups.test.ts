/** Commands for several keys at one moment: they share statements, and each has its own outcome. */
import { type MysqlClient, mysqlStore } from 'holdfast/mysql';
import { type Command, NotExecutedError, type Reply, type Store } from 'holdfast/protocol';
import { available, type MariadbServer, startMariadb } from 'holdfast-test-servers';
import type mysql from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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

const COUNT = 40;
const ignored = (): undefined => undefined;

describe.runIf(available('mariadb'))('several keys at once in MariaDB', () => {
  let server: MariadbServer;
  let url: string;
  let plain: mysql.Pool;

  beforeAll(async () => {
    server = await startMariadb({ own: true });
    url = await server.createDatabase();
    await tableIn(url);
    plain = mysql2Pool(url);
  });
  afterAll(async () => {
    await clearScene();
    await server?.stop();
  });

  const claims = (prefix: string) =>
    Array.from({ length: COUNT }, (_, at) => claimOf(`default/${prefix}:${at}`, 'a'));
  const all = (store: Store, commands: readonly Command[]): Promise<readonly Reply[]> =>
    Promise.all(store.apply(commands));
  const kinds = (replies: readonly Reply[]): readonly string[] => [
    ...new Set(replies.map(({ kind }) => kind)),
  ];

  it('share statements', async () => {
    let sent = 0;
    const own = mysql2Pool(url);
    own.on('connection', (connection) => {
      const { query } = connection;
      Object.assign(connection, {
        query(...given: Parameters<typeof query>) {
          sent += 1;
          return Reflect.apply(query, connection, given);
        },
      });
    });
    const store = mysqlStore(own);
    await all(store, claims('shared'));
    sent = 0;
    expect(kinds(await all(store, claims('shared').map(renewOf)))).toEqual(['renewed']);
    expect(sent).toBeLessThan(COUNT / 4);
    expect(kinds(await all(store, claims('shared').map(releaseOf)))).toEqual(['released']);
    expect(sent).toBeLessThan(COUNT / 2);
    const [rows] = await plain.query<mysql.RowDataPacket[]>(
      "SELECT COUNT(*) AS held FROM holdfast WHERE lock_key LIKE 'default/shared:%' AND state NOT LIKE '%\"holders\":[]%'",
    );
    expect(rows[0]?.held).toBe(0);
  });

  /** A pool whose every session begins with this statement. */
  function sessions(setting: string): MysqlClient {
    const pool = mysql2Pool(url);
    pool.on('connection', (connection) => connection.query(setting));
    return pool;
  }

  const POOLS: Readonly<Record<string, () => MysqlClient | Promise<MysqlClient>>> = {
    mysql2: () => mysql2Pool(url),
    'mysql2 that counts changed rows only': () => mysql2Pool(url, { flags: ['-FOUND_ROWS'] }),
    'mysql2 with a format of its own': () => mysql2Pool(url, { queryFormat: (sql: string) => sql }),
    mariadb: () => mariadbPool(url),
    'mariadb that counts changed rows only': () => mariadbPool(url, { foundRows: false }),
    'mysql2 without autocommit': () => sessions('SET autocommit = 0'),
    'mysql2 with no mode at all': () => sessions("SET sql_mode = ''"),
    'mysql2 with simultaneous assignment': () =>
      sessions("SET sql_mode = 'SIMULTANEOUS_ASSIGNMENT,NO_UNSIGNED_SUBTRACTION,ANSI,STRICT_ALL_TABLES'"),
    'one connection of mysql2': () => mysql2Connection(url),
  };

  it.each(Object.entries(POOLS))(
    '%s: some were changed by others, and are decided again',
    async (name, open) => {
      const store = mysqlStore(await open());
      const other = mysqlStore(plain);
      await all(store, claims(name));
      // Behind the back of the store: what it has in its cache is not there any more.
      const released = claims(name).filter((_, at) => at % 5 === 0);
      expect(kinds(await all(other, released.map(releaseOf)))).toEqual(['released']);
      const taken = released.filter((_, at) => at % 2 === 0);
      expect(
        kinds(
          await all(
            other,
            taken.map(({ key }) => claimOf(key, 'b')),
          ),
        ),
      ).toEqual(['granted']);
      const replies = await all(store, claims(name).map(renewOf));
      expect(replies.map(({ kind }) => kind)).toEqual(
        replies.map((_, at) => (at % 5 === 0 ? 'lost' : 'renewed')),
      );
      for (const { key } of taken) expect((await other.read(key))?.holders[0]?.owner).toBe('b');
    },
  );

  it('F4: a lost reply leaves each of them unknown, and the same claims again get the grants that are stored', async () => {
    let loses = false;
    const lossy: MysqlClient = {
      async getConnection() {
        const connection = await plain.getConnection();
        return {
          async query(options: mysql.QueryOptions) {
            const result = await connection.query(options);
            if (loses) throw new Error('the reply was lost');
            return result;
          },
          release: () => connection.release(),
        };
      },
    };
    const store = mysqlStore(lossy);
    await all(store, claims('lossy'));
    await all(store, claims('lossy').map(releaseOf));
    const again = claims('lossy').map((claim) => ({ ...claim, hold: { process: 'a', number: 2 } }));
    loses = true;
    const settled = await Promise.allSettled(store.apply(again));
    loses = false;
    for (const one of settled) {
      expect(one.status).toBe('rejected');
      expect((one as PromiseRejectedResult).reason).not.toBeInstanceOf(NotExecutedError);
    }
    const stored = await Promise.all(again.map(({ key }) => store.read(key)));
    const tokens = (await all(store, again)).map((reply) => (reply.kind === 'granted' ? reply.token : reply));
    expect(tokens).toEqual(stored.map((snapshot) => snapshot?.holders[0]?.token));
  });

  it('rows that are gone are not made again, and the others are written', async () => {
    const store = mysqlStore(plain);
    await all(store, claims('gone'));
    await plain.query("DELETE FROM holdfast WHERE lock_key IN ('default/gone:3', 'default/gone:30')");
    const replies = await all(store, claims('gone').map(renewOf));
    expect(replies.map(({ kind }) => kind)).toEqual(
      replies.map((_, at) => (at === 3 || at === 30 ? 'lost' : 'renewed')),
    );
    expect(await store.read('default/gone:3')).toBeNull();
  });

  it('a row that another transaction keeps locked does not keep the others from being written', async () => {
    const store = mysqlStore(mysql2Pool(url));
    const all40 = claims('locked');
    await all(store, all40);
    const other = await mysql2Connection(url);
    await other.query('START TRANSACTION');
    await other.query(
      "UPDATE holdfast SET delete_after = delete_after + 1 WHERE lock_key = 'default/locked:7'",
    );
    for (let round = 0; round < 3; round++) {
      const renewals = store.apply(all40.map(renewOf));
      void renewals[7]?.catch(ignored);
      expect(kinds(await Promise.all(renewals.filter((_, at) => at !== 7)))).toEqual(['renewed']);
    }
    await other.query('ROLLBACK');
    expect((await say(store, renewOf(all40[7] ?? claimOf('default/locked:7', 'a')))).kind).toBe('renewed');
  });
});
