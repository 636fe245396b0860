/** The guarded write as the clients of PostgreSQL make it, in their own words. */

import { and, sql as drizzleSql, eq } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { bigint, integer, pgTable, text } from 'drizzle-orm/pg-core';
import { LeaseLostError } from 'holdfast';
import { NoRowChangedError, sqlGuard } from 'holdfast/fences';
import { available, type PostgresServer, startPostgres } from 'holdfast-test-servers';
import knex from 'knex';
import { CompiledQuery, Kysely, PostgresDialect, sql } from 'kysely';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { poolOn, takeover } from './takeover.js';

interface Written {
  readonly changed: number | bigint;
  /** The token column of the row. */
  rows(): Promise<readonly unknown[]>;
}

interface Client {
  /** `UPDATE account`, guarded by its column. */
  write(id: string, amount: number, token: number): Promise<Written>;
  /** `INSERT INTO mail` in a transaction, guarded by the guard table. */
  send?(address: string, token: number): Promise<void>;
  end(): Promise<unknown>;
}

const guard = sqlGuard({ dialect: 'postgres' });
/** Knex writes `?`, and numbers them itself. */
const unnumbered = sqlGuard({ dialect: 'sqlite' });
const UPDATE = `UPDATE account SET amount = $1, ${guard.stamp(2)} WHERE id = $3 AND ${guard.notStale(2)}`;
const READ = 'SELECT fence FROM account WHERE id = $1';

interface Tables {
  account: { id: string; amount: number; fence: number };
  mail: { address: string };
}

const CLIENTS: Readonly<Record<string, (url: string) => Client>> = {
  pg(url) {
    const pool = poolOn(url);
    return {
      async write(id, amount, token) {
        const { rowCount } = await pool.query(UPDATE, [amount, token, id]);
        return { changed: rowCount ?? 0, rows: async () => (await pool.query(READ, [id])).rows };
      },
      async send(address, token) {
        const client = await pool.connect();
        try {
          await client.query('BEGIN');
          const raise = guard.raise('mail', token);
          guard.check((await client.query(raise.text, [...raise.values])).rowCount ?? 0, token);
          await client.query('INSERT INTO mail VALUES ($1)', [address]);
          await client.query('COMMIT');
        } catch (error) {
          await client.query('ROLLBACK');
          throw error;
        } finally {
          client.release();
        }
      },
      end: () => pool.end(),
    };
  },
  postgres(url) {
    const client = postgres(url, { max: 2, onnotice: () => undefined });
    return {
      async write(id, amount, token) {
        const { count } = await client.unsafe(UPDATE, [amount, token, id]);
        return { changed: count, rows: () => client.unsafe(READ, [id]) };
      },
      async send(address, token) {
        await client.begin(async (transaction) => {
          const raise = guard.raise('mail', token);
          guard.check((await transaction.unsafe(raise.text, [...raise.values])).count, token);
          await transaction`INSERT INTO mail VALUES (${address})`;
        });
      },
      end: () => client.end({ timeout: 1 }),
    };
  },
  knex(url) {
    const db = knex({ client: 'pg', connection: url });
    return {
      async write(id, amount, token) {
        const account = db('account').where({ id });
        const changed = await account
          .clone()
          .whereRaw(unnumbered.notStale(), [token])
          .update({ amount, fence: token });
        return { changed, rows: () => account.select('fence') };
      },
      async send(address, token) {
        await db.transaction(async (transaction) => {
          const raise = unnumbered.raise('mail', token);
          guard.check((await transaction.raw(raise.text, [...raise.values])).rowCount, token);
          await transaction('mail').insert({ address });
        });
      },
      end: () => db.destroy(),
    };
  },
  kysely(url) {
    const db = new Kysely<Tables>({
      dialect: new PostgresDialect({ pool: poolOn(url) }),
    });
    return {
      async write(id, amount, token) {
        const { numUpdatedRows } = await db
          .updateTable('account')
          .set({ amount, fence: token })
          .where('id', '=', id)
          .where(sql<boolean>`coalesce(fence, 0) <= ${token}`)
          .executeTakeFirstOrThrow();
        const rows = () => db.selectFrom('account').select('fence').where('id', '=', id).execute();
        return { changed: numUpdatedRows, rows };
      },
      async send(address, token) {
        await db.transaction().execute(async (transaction) => {
          const raise = guard.raise('mail', token);
          const { numAffectedRows } = await transaction.executeQuery(
            CompiledQuery.raw(raise.text, [...raise.values]),
          );
          guard.check(numAffectedRows ?? 0, token);
          await transaction.insertInto('mail').values({ address }).execute();
        });
      },
      end: () => db.destroy(),
    };
  },
  drizzle(url) {
    const account = pgTable('account', {
      id: text('id').primaryKey(),
      amount: integer('amount'),
      fence: bigint('fence', { mode: 'number' }).notNull().default(0),
    });
    const db = drizzle(poolOn(url));
    return {
      async write(id, amount, token) {
        const { rowCount } = await db
          .update(account)
          .set({ amount, fence: token })
          .where(and(eq(account.id, id), drizzleSql`coalesce(${account.fence}, 0) <= ${token}`));
        const rows = async () => db.select({ fence: account.fence }).from(account).where(eq(account.id, id));
        return { changed: rowCount ?? 0, rows };
      },
      end: () => db.$client.end(),
    };
  },
};

describe.runIf(available('postgres'))('a guarded write to PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server?.stop());

  it.each(Object.entries(CLIENTS))(
    'F1: with %s refuses a paused holder; its successor stands',
    async (_name, open) => {
      const url = await server.createDatabase();
      const pool = poolOn(url);
      await pool.query(
        `CREATE TABLE account (id TEXT PRIMARY KEY, amount INTEGER, fence BIGINT NOT NULL DEFAULT 0);
       INSERT INTO account (id, amount) VALUES ('ann', 0); CREATE TABLE mail (address TEXT); ${guard.createTable}`,
      );
      const client = open(url);
      const { paused, successor, close } = await takeover('account:ann');
      const write = async (id: string, amount: number, token: number): Promise<void> => {
        const { changed, rows } = await client.write(id, amount, token);
        guard.check(changed, token, changed > 0 ? [] : await rows());
      };
      try {
        for (const amount of [10, 20]) await write('ann', amount, successor.token);
        await expect(write('ann', 1, paused.token)).rejects.toThrow(LeaseLostError);
        await expect(write('nobody', 1, successor.token)).rejects.toThrow(NoRowChangedError);
        const { rows } = await pool.query('SELECT amount, fence FROM account');
        expect(rows).toEqual([{ amount: 20, fence: String(successor.token) }]);
        if (!client.send) return;
        for (const { token } of [successor, successor]) await client.send('ann@example.org', token);
        await expect(client.send('late@example.org', paused.token)).rejects.toThrow(LeaseLostError);
        const mails = await pool.query('SELECT DISTINCT address FROM mail');
        expect(mails.rows).toEqual([{ address: 'ann@example.org' }]);
      } finally {
        await close();
        await client.end();
        await pool.end();
      }
    },
  );
});
