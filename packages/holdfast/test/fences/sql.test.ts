import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type DatabaseSyncInstance as Database, DatabaseSync } from '@photostructure/sqlite';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { NoRowChangedError, sqlGuard } from '../../src/fences/index.js';
import { InvalidArgumentError, LeaseLostError } from '../../src/protocol/index.js';

let folder: string;
let connections: Database[];

function connect(): Database {
  const db = new DatabaseSync(join(folder, 'resource.db'));
  connections.push(db);
  db.exec('PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 0');
  return db;
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-fences-'));
  connections = [];
});

afterEach(() => {
  for (const db of connections) db.close();
  rmSync(folder, { recursive: true, force: true });
});

describe('a row with a token column', () => {
  const guard = sqlGuard();
  const update = `UPDATE accounts SET balance = ?, ${guard.stamp()} WHERE id = ? AND ${guard.notStale()}`;

  function accounts(): Database {
    const db = connect();
    db.exec('CREATE TABLE accounts (id TEXT PRIMARY KEY, balance INTEGER, fence BIGINT)');
    db.exec("INSERT INTO accounts (id, balance) VALUES ('a', 100), ('b', 100)");
    return db;
  }
  function write(db: Database, id: string, balance: number, token: number): void {
    guard.check(db.prepare(update).run(balance, token, id, token).changes, token);
  }
  function balanceOf(db: Database, id: string): unknown {
    return db.prepare('SELECT balance FROM accounts WHERE id = ?').get(id)?.balance;
  }

  it('F1: refuses the holder that slept past its lease, and changes nothing', () => {
    const db = accounts();
    write(db, 'a', 80, 1_700_000_000_000_001);
    expect(() => write(db, 'a', 90, 1_700_000_000_000_000)).toThrow(LeaseLostError);
    expect(balanceOf(db, 'a')).toBe(80);
  });

  it('lets one token write many times, and a row without a token be stamped by anybody', () => {
    const db = accounts();
    for (const balance of [90, 80, 70]) write(db, 'a', balance, 7);
    write(db, 'b', 60, 1);
    expect([balanceOf(db, 'a'), balanceOf(db, 'b')]).toEqual([70, 60]);
  });

  it('guards each row for itself', () => {
    const db = accounts();
    write(db, 'a', 1, 9);
    write(db, 'b', 2, 3);
    expect(() => write(db, 'a', 3, 3)).toThrow(LeaseLostError);
  });

  it('says so when there is no such row, instead of passing in silence', () => {
    expect(() => write(accounts(), 'nobody', 1, 9)).toThrow(/no such row/);
  });

  it('tells a missing row and a condition of your own from a stale token, where the row was read', () => {
    const db = accounts();
    const readRows = (id: string): unknown[] => db.prepare('SELECT fence FROM accounts WHERE id = ?').all(id);
    const writeOf = (id: string, token: number, more = ''): void => {
      const { changes } = db.prepare(update + more).run(1, token, id, token);
      guard.check(changes, token, readRows(id));
    };
    writeOf('a', 9);
    expect(() => writeOf('a', 8)).toThrow(/a later holder has written, with token 9/);
    expect(() => writeOf('a', 8)).toThrow(LeaseLostError);
    expect(() => writeOf('nobody', 9)).toThrow(NoRowChangedError);
    expect(() => writeOf('nobody', 9)).toThrow(/there is no such row/);
    expect(() => writeOf('b', 9, ' AND balance > 1000')).toThrow(NoRowChangedError);
    expect(() => writeOf('b', 9, ' AND balance > 1000')).toThrow(/another condition/);
  });

  it('reads tokens as drivers give them, and refuses rows without one', () => {
    for (const fence of [9, 9n, '9']) expect(() => guard.check(0, 8, [{ fence }])).toThrow(LeaseLostError);
    expect(() => guard.check(0, 8, [{ fence: null }])).toThrow(NoRowChangedError);
    for (const rows of [[{}], [null], [{ fence: 'many' }], { fence: 9 }] as unknown as unknown[][]) {
      expect(() => guard.check(0, 8, rows)).toThrow(InvalidArgumentError);
      expect(() => guard.check(0, 8, rows)).not.toThrow(NoRowChangedError);
    }
  });

  it('loses the update without the guard: the test above can fail', () => {
    const db = accounts();
    const unguarded = db.prepare('UPDATE accounts SET balance = ?, fence = ? WHERE id = ?');
    unguarded.run(80, 2, 'a');
    unguarded.run(90, 1, 'a');
    expect(balanceOf(db, 'a')).toBe(90);
  });
});

describe('a guard table', () => {
  const guard = sqlGuard({ table: 'main.order' });

  function resource(): Database {
    const db = connect();
    db.exec(guard.createTable);
    db.exec('CREATE TABLE log (token INTEGER, line TEXT)');
    return db;
  }
  function raise(db: Database, token: number, name = 'report'): void {
    const { text, values } = guard.raise(name, token);
    guard.check(db.prepare(text).run(...values).changes, token);
  }
  function write(db: Database, token: number, name = 'report'): void {
    db.exec('BEGIN IMMEDIATE');
    try {
      raise(db, token, name);
      db.prepare('INSERT INTO log VALUES (?, ?)').run(token, name);
      db.exec('COMMIT');
    } catch (error) {
      db.exec('ROLLBACK');
      throw error;
    }
  }
  function written(db: Database): unknown[] {
    return db
      .prepare('SELECT token FROM log')
      .all()
      .map((row) => row.token);
  }

  it('F1: refuses a stale token with its whole transaction, and takes the same token again', () => {
    const db = resource();
    for (const token of [5, 5, 8]) write(db, token);
    expect(() => write(db, 5)).toThrow(LeaseLostError);
    write(db, 8);
    expect(written(db)).toEqual([5, 5, 8, 8]);
  });

  it('reads the token of a resource, and can begin with none', () => {
    const db = resource();
    const read = (name: string): unknown => db.prepare(guard.read(name).text).get(...guard.read(name).values);
    const { text, values } = guard.createRow('report');
    db.prepare(text).run(...values);
    expect(read('report')).toEqual({ fence: 0 });
    write(db, 5);
    db.prepare(text).run(...values);
    expect([read('report'), read('nothing')]).toEqual([{ fence: 5 }, undefined]);
  });

  it('keeps resources apart', () => {
    const db = resource();
    write(db, 9, 'one');
    write(db, 2, 'two');
    expect(written(db)).toEqual([9, 2]);
  });

  it('can be created twice, and keeps its tokens', () => {
    const db = resource();
    write(db, 9);
    db.exec(guard.createTable);
    expect(() => write(db, 8)).toThrow(LeaseLostError);
  });

  it('lets no older holder in between the raise and the commit of a later one', () => {
    const later = resource();
    const older = connect();
    later.exec('BEGIN');
    raise(later, 9);
    expect(() => write(older, 8)).toThrow(/locked|busy/i);
    later.prepare('INSERT INTO log VALUES (?, ?)').run(9, 'report');
    later.exec('COMMIT');
    expect(() => write(older, 8)).toThrow(LeaseLostError);
    expect(written(older)).toEqual([9]);
  });

  it('forgets a raise that was rolled back', () => {
    const db = resource();
    db.exec('BEGIN');
    raise(db, 9);
    db.exec('ROLLBACK');
    write(db, 8);
    expect(written(db)).toEqual([8]);
  });

  it('keeps what is written in the order of tokens, whatever order the writers come in', () => {
    const db = resource();
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER })), (tokens) => {
        db.exec('DELETE FROM log; DELETE FROM "order"');
        let highest = 0;
        for (const token of tokens) {
          if (token < highest) expect(() => write(db, token)).toThrow(LeaseLostError);
          else write(db, token);
          highest = Math.max(highest, token);
        }
        const order = written(db) as number[];
        expect(order).toEqual(order.toSorted((a, b) => a - b));
        expect(order.at(-1) ?? 0).toBe(highest);
      }),
      { numRuns: 50 },
    );
  });
});

describe('what it writes', () => {
  it('numbers the parameters of PostgreSQL, so that the token is given once', () => {
    const guard = sqlGuard({ dialect: 'postgres', column: 'lock_token', table: 'app.fences' });
    expect(guard.stamp(3)).toBe('"lock_token" = $3');
    expect(guard.notStale(3)).toBe('COALESCE("lock_token", 0) <= $3');
    expect(guard.raise('report', 7)).toEqual({
      text:
        'INSERT INTO "app"."fences" AS guard (resource, token) VALUES ($1, $2) ' +
        'ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE guard.token <= excluded.token',
      values: ['report', 7],
    });
    expect(() => guard.stamp()).toThrow(InvalidArgumentError);
    expect(() => guard.notStale(0)).toThrow(InvalidArgumentError);
  });

  it('F17: lets no name through that could be SQL', () => {
    for (const name of ['', 'a b', 'a"b', 'x; DROP TABLE t', '1st', 'é', 'a..b', 'x'.repeat(64)]) {
      expect(() => sqlGuard({ table: name }), name).toThrow(InvalidArgumentError);
      expect(() => sqlGuard({ column: name }), name).toThrow(InvalidArgumentError);
    }
    expect(() => sqlGuard({ column: 'a.b' })).toThrow(InvalidArgumentError);
  });

  it('refuses what is no token, no resource, no count and no dialect', () => {
    const guard = sqlGuard();
    for (const token of [0, -1, 1.5, Number.NaN, 2 ** 53, '7' as unknown as number]) {
      expect(() => guard.raise('report', token)).toThrow(InvalidArgumentError);
      expect(() => guard.check(1, token)).toThrow(InvalidArgumentError);
    }
    expect(() => guard.raise('', 7)).toThrow(InvalidArgumentError);
    for (const count of [undefined, null, -1, Number.NaN] as unknown as number[]) {
      expect(() => guard.check(count, 7)).toThrow(InvalidArgumentError);
    }
    expect(() => sqlGuard({ dialect: 'oracle' as 'sqlite' })).toThrow(InvalidArgumentError);
  });

  it('counts rows as numbers and as big integers', () => {
    const guard = sqlGuard();
    guard.check(1, 7);
    guard.check(2n, 7);
    expect(() => guard.check(0n, 7)).toThrow(LeaseLostError);
  });
});
