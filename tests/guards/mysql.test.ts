import { InvalidArgumentError, LeaseLostError } from 'holdfast';
import { NoRowChangedError, type SqlStatement, sqlFences, sqlGuard } from 'holdfast/fences';
import { available, type MariadbServer, startMariadb } from 'holdfast-test-servers';
import mysql, { type Connection, type ResultSetHeader, type RowDataPacket } from 'mysql2/promise';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { takeover } from './takeover.js';

const guard = sqlGuard({ dialect: 'mysql' });
const UPDATE = `UPDATE account SET amount = ?, ${guard.stamp()} WHERE id = ? AND ${guard.notStale()}`;
const COUNTED = UPDATE.replace('SET', 'SET writes = writes + 1,');
const READ = 'SELECT fence FROM account WHERE id = ? FOR UPDATE';

/** How a connection counts rows: those that matched, as mysql2 asks by itself, or those that changed. */
const COUNTS = { 'matched rows are counted': [], 'changed rows are counted': ['-FOUND_ROWS'] };

describe.runIf(available('mariadb'))('the guard for MySQL, on MariaDB', () => {
  let server: MariadbServer;

  beforeAll(async () => {
    server = await startMariadb();
  });
  afterAll(() => server?.stop());

  describe.each(Object.entries(COUNTS))('%s', (_name, flags) => {
    let url: string;
    let opened: Connection[] = [];
    let db: Connection;

    async function connect(): Promise<Connection> {
      const connection = await mysql.createConnection({ uri: url, flags });
      opened.push(connection);
      return connection;
    }
    async function run(statement: SqlStatement, on = db): Promise<number> {
      const [result] = await on.execute<ResultSetHeader>(statement.text, [...statement.values]);
      return result.affectedRows;
    }
    async function rows(
      text: string,
      values: readonly (string | number)[] = [],
      on = db,
    ): Promise<RowDataPacket[]> {
      const [found] = await on.execute<RowDataPacket[]>(text, [...values]);
      return found;
    }

    beforeEach(async () => {
      url = await server.createDatabase();
      db = await connect();
      await db.query(guard.createTable);
      await db.query(
        `CREATE TABLE account (id VARCHAR(40) PRIMARY KEY, amount INT, writes INT NOT NULL DEFAULT 0,
         fence BIGINT NOT NULL DEFAULT 0)`,
      );
      await db.query("INSERT INTO account (id, amount) VALUES ('ann', 0)");
    });
    afterEach(() => {
      for (const connection of opened) connection.destroy();
      opened = [];
    });

    async function write(amount: number, token: number, id = 'ann', update = UPDATE): Promise<void> {
      const [{ affectedRows }] = await db.execute<ResultSetHeader>(update, [amount, token, id, token]);
      guard.check(affectedRows, token, affectedRows > 0 ? [] : await rows(READ, [id]));
    }

    it('F1: the late write of a paused holder is refused, and that of its successor stands', async () => {
      const { paused, successor, close } = await takeover('account:ann');
      await write(10, successor.token);
      await expect(write(1, paused.token)).rejects.toThrow(LeaseLostError);
      await expect(write(1, paused.token)).rejects.toMatchObject({ reason: 'replaced' });
      expect(await rows('SELECT amount, fence FROM account')).toEqual([
        { amount: 10, fence: successor.token },
      ]);
      await close();
    });

    it('the same write twice is written twice, by an UPDATE that always changes the row', async () => {
      await write(10, 7, 'ann', COUNTED);
      await write(10, 7, 'ann', COUNTED);
      expect(await rows('SELECT amount, writes FROM account')).toEqual([{ amount: 10, writes: 2 }]);
    });

    it('a write that repeats what is there needs matched rows: a count of 0 is never taken for done', async () => {
      await write(10, 7);
      const again = write(10, 7);
      if (flags.length === 0) return again;
      await expect(again).rejects.toThrow(NoRowChangedError);
      await expect(write(10, 7)).rejects.toThrow(/FOUND_ROWS/);
    });

    it('a condition of your own that did not hold is not taken for done', async () => {
      await write(10, 7);
      await expect(write(20, 7, 'ann', `${UPDATE} AND amount > 1000`)).rejects.toThrow(NoRowChangedError);
      expect(await rows('SELECT amount FROM account')).toEqual([{ amount: 10 }]);
    });

    it('refuses a stale token in a transaction that has read the row before its successor wrote', async () => {
      await write(10, 5);
      const late = await connect();
      await late.query('SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ');
      await late.beginTransaction();
      await rows('SELECT * FROM account', [], late);
      await write(100, 6);
      const [{ affectedRows }] = await late.execute<ResultSetHeader>(UPDATE, [1, 5, 'ann', 5]);
      expect(affectedRows).toBe(0);
      const snapshot = await rows('SELECT fence FROM account', [], late);
      expect(snapshot).toEqual([{ fence: 5 }]);
      expect(() => guard.check(affectedRows, 5, snapshot)).toThrow(NoRowChangedError);
      const locked = await rows(READ, ['ann'], late);
      expect(() => guard.check(affectedRows, 5, locked)).toThrow(/a later holder has written, with token 6/);
    });

    it('reads the guard table as it is, and not as the transaction first saw it', async () => {
      await run(guard.createRow('report'));
      await run(guard.raise('report', 5));
      const late = await connect();
      await late.query('SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ');
      await late.beginTransaction();
      await rows('SELECT * FROM account', [], late);
      await run(guard.raise('report', 6));
      expect(await run(guard.raise('report', 5), late)).toBe(0);
      const { text, values } = guard.read('report');
      const found = await rows(text, values, late);
      expect(() => guard.check(0, 5, found)).toThrow(/a later holder has written, with token 6/);
    });

    it('a missing row is no stale token', async () => {
      await expect(write(10, 7, 'nobody')).rejects.toThrow(NoRowChangedError);
      await expect(write(10, 7, 'nobody')).rejects.toThrow(/no such row/);
    });

    it('the guard table takes the same token again, and refuses a lower one', async () => {
      expect(await run(guard.raise('report', 5))).toBe(0);
      await run(guard.createRow('report'));
      await run(guard.createRow('report'));
      for (const token of [5, 5, 8, 8])
        expect(await run(guard.raise('report', token)), String(token)).toBe(1);
      expect(await run(guard.raise('report', 5))).toBe(0);
      await run(guard.createRow('report'));
      const { text, values } = guard.read('report');
      const found = await rows(text, [...values]);
      expect(found).toEqual([{ fence: 8 }]);
      expect(() => guard.check(0, 5, found)).toThrow(LeaseLostError);
    });

    it('keeps resources apart that MySQL would call equal', async () => {
      for (const resource of ['ann', 'Ann', 'ann ', 'änn']) await run(guard.createRow(resource));
      expect(await run(guard.raise('ann', 9))).toBe(1);
      for (const resource of ['Ann', 'ann ', 'änn']) expect(await run(guard.raise(resource, 1))).toBe(1);
    });

    it('lets no older holder in between the raise and the commit of a later one', async () => {
      await run(guard.createRow('report'));
      const [later, older] = [await connect(), await connect()];
      await later.beginTransaction();
      expect(await run(guard.raise('report', 9), later)).toBe(1);
      await older.query('SET SESSION innodb_lock_wait_timeout = 1');
      await expect(run(guard.raise('report', 8), older)).rejects.toThrow(/lock wait timeout/i);
      await older.query('SET SESSION innodb_lock_wait_timeout = 50');
      const waiting = run(guard.raise('report', 8), older);
      await later.commit();
      expect(await waiting).toBe(0);
    });

    it('keeps the tokens of a receiver of requests', async () => {
      const fences = sqlFences(guard, run);
      const raises: boolean[] = [];
      for (const token of [5, 5, 9, 8]) raises.push(await fences.raise('order', token));
      expect(raises).toEqual([true, true, true, false]);
      expect(await fences.raise('other', 1)).toBe(true);
    });
  });

  it('writes names as MySQL does', () => {
    const named = sqlGuard({ dialect: 'mysql', column: 'order', table: 'app.fences' });
    expect(named.stamp()).toBe('`order` = ?');
    expect(named.raise('report', 7)).toEqual({
      text: 'UPDATE `app`.`fences` SET token = ?, raises = raises + 1 WHERE resource = ? AND token <= ?',
      values: [7, 'report', 7],
    });
    expect(() => named.createRow('')).toThrow(InvalidArgumentError);
  });
});
