/** A connection keeps the plans of its statements: one made while the table of other software was small does not stay. */
import { createLocks } from 'holdfast';
import { migrate, type PostgresLayout, postgresStore } from 'holdfast/postgres';
import { distributedLocks, lockServiceCentral } from 'holdfast/postgres/layouts';
import { available, startPostgres } from 'holdfast-test-servers';
import pg from 'pg';
import { describe, expect, it } from 'vitest';

const ROWS = 20_000;
const CYCLES = 20;

interface TableCase {
  readonly layout: PostgresLayout;
  readonly table: string;
  /** Rows of locks that others hold. */
  readonly grow: string;
}

const CASES: readonly TableCase[] = [
  {
    layout: distributedLocks,
    table: 'distributed_locks',
    grow: `INSERT INTO distributed_locks (lock_name, holder_id, acquired_at, expires_at)
      SELECT 'other-' || n, 'other', now(), now() + interval '1 hour' FROM generate_series(1, ${ROWS}) AS n`,
  },
  {
    layout: lockServiceCentral,
    table: 'locks',
    grow: `INSERT INTO locks (lock_id, namespace, lock_name, owner, instance_id, lease_duration, expiry)
      SELECT 'other:' || n, 'other', n, 'other', 'i', 60, 9000000000 FROM generate_series(1, ${ROWS}) AS n`,
  },
];

describe.runIf(available('postgres'))('plans on tables of other software', () => {
  it.each(CASES)(
    'no statement on $table reads the whole table after it has grown',
    async ({ layout, table, grow }) => {
      const server = await startPostgres();
      const pool = new pg.Pool({ connectionString: await server.createDatabase(), max: 1 });
      try {
        await migrate(pool, { layout });
        const locks = createLocks(postgresStore(pool, { layout }));
        const cycles = async (): Promise<void> => {
          for (let cycle = 0; cycle < CYCLES; cycle++) await (await locks.acquire('job')).release();
        };
        const rowsRead = async (): Promise<number> => {
          await pool.query('SELECT pg_stat_force_next_flush()');
          const text = 'SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = $1';
          const { rows } = await pool.query<{ readonly seq_tup_read: string }>(text, [table]);
          return Number(rows[0]?.seq_tup_read);
        };
        await cycles();
        await pool.query(`VACUUM ANALYZE ${table}`);
        await cycles();
        await pool.query(grow);
        const before = await rowsRead();
        await cycles();
        expect((await rowsRead()) - before).toBeLessThan((CYCLES * ROWS) / 2);
        await locks.close();
      } finally {
        await pool.end();
        await server.stop();
      }
    },
  );
});
