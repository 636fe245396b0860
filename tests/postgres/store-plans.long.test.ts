/**
 * How many rows each statement reads, counted by the server. A connection keeps its plans: those made while the table was
 * small must not read the whole table once it is large, with no ANALYZE in between.
 */
import type { Command } from 'holdfast/protocol';
import { available, type PostgresServer, startPostgres } from 'holdfast-test-servers';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { claimOf, holdOf, migrated, releaseOf, renewOf } from './store-scene.js';
import { VERSIONS } from './versions.js';

const ROWS = 200_000;
/** PL/pgSQL keeps a plan for good after five executions. */
const EXECUTIONS = 8;
const BATCH = 32;
/** A row is looked up a few times, to read and to write it, and old versions of it in the same page are counted too. */
const READS_PER_COMMAND_MAX = 20;
const COUNT = `SELECT seq_tup_read + idx_tup_fetch AS count FROM pg_stat_xact_user_tables
  WHERE schemaname = 'holdfast' AND relname = 'records'`;

interface Statement {
  readonly name: string;
  readonly text: string;
  readonly values: readonly unknown[];
  readonly commands: number;
}

function applied(name: string, commands: readonly Command[], cleanUp = 0): Statement {
  const text = 'SELECT holdfast.apply($1::jsonb, $2, true, false)';
  return { name, text, values: [JSON.stringify(commands), cleanUp], commands: commands.length + cleanUp };
}

const called = (text: string): Statement => ({ name: text, text: `SELECT ${text}`, values: [], commands: 3 });

/** Every statement that reads the table, each on what the ones before left. */
function statements(round: number): readonly Statement[] {
  const hold = holdOf('plans', round);
  const keys = Array.from({ length: BATCH }, (_, index) => `plan-${index}`);
  return [
    applied('a claim', [claimOf('one', hold)]),
    applied('a refused claim', [claimOf('one', holdOf('other', round))]),
    applied('a queued claim', [claimOf('one', holdOf('waiter', round), { queue: true })]),
    applied('a renewal', [renewOf('one', hold)]),
    applied('a release to a waiter', [releaseOf('one', hold)]),
    applied('a claim of the first waiter', [claimOf('one', holdOf('waiter', round), { queue: true })]),
    applied('an eviction', [{ kind: 'evict', key: 'one', upToToken: Number.MAX_SAFE_INTEGER }]),
    applied('a release of nothing', [releaseOf('one', hold)]),
    applied(
      'claims',
      keys.map((key) => claimOf(key, hold)),
    ),
    applied(
      'refused claims',
      keys.map((key) => claimOf(key, holdOf('other', round))),
    ),
    applied(
      'renewals',
      keys.map((key) => renewOf(key, hold)),
    ),
    applied(
      'releases',
      keys.map((key) => releaseOf(key, hold)),
    ),
    applied('clean-up', [renewOf('absent', hold)], 10),
    called("holdfast.read('one')"),
    called("holdfast.list('plan', NULL, 3)"),
    called("holdfast.list('plan', 'plan-2', 3)"),
    called("holdfast.acquire_lock('plain', 'anna')"),
    called("holdfast.acquire_lock('plain', 'berta')"),
    called("holdfast.extend_lock('plain', 'anna', 20)"),
    called("holdfast.lock_token('plain', 'anna')"),
    called("holdfast.release_lock('plain', 'anna')"),
  ];
}

describe.runIf(available('postgres')).each(VERSIONS)('plans on PostgreSQL %s', (version) => {
  const isThere = available(`postgres-${version}`);
  let server: PostgresServer;

  beforeAll(async () => {
    if (isThere) server = await startPostgres({ version });
  });

  afterAll(() => server?.stop());

  /** The view counts also what the connection has not reported yet, so the difference is taken. */
  async function rowsRead(client: pg.Client, { text, values }: Statement): Promise<number> {
    const count = async (): Promise<number> => {
      const { rows } = await client.query<{ count: string }>(COUNT);
      return Number(rows[0]?.count);
    };
    await client.query('BEGIN');
    const before = await count();
    await client.query({ name: text, text, values: [...values] });
    const after = await count();
    await client.query('COMMIT');
    return after - before;
  }

  it.runIf(isThere).each([
    { table: 'fresh', prepare: '' },
    { table: 'truncated', prepare: 'TRUNCATE holdfast.records' },
    { table: 'analysed while small', prepare: 'VACUUM ANALYZE holdfast.records' },
  ])(
    'a table that is $table: every statement reads as few rows of a large table as of a small one',
    async ({ prepare }) => {
      const url = await migrated(await server.createDatabase());
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      try {
        await client.query('ALTER TABLE holdfast.records SET (autovacuum_enabled = false)');
        for (const statement of statements(1)) await rowsRead(client, statement);
        if (prepare) await client.query(prepare);
        for (let round = 2; round < EXECUTIONS; round++) {
          for (const statement of statements(round)) await rowsRead(client, statement);
        }
        await client.query(
          `INSERT INTO holdfast.records (key, delete_after)
         SELECT 'row-' || i, CASE WHEN i % 2 = 0 THEN 1 ELSE 9007199254740991 END FROM generate_series(1, ${ROWS}) AS i`,
        );
        for (const statement of statements(EXECUTIONS)) {
          const count = await rowsRead(client, statement);
          const most = statement.commands * READS_PER_COMMAND_MAX;
          expect(count, `rows read by ${statement.name}`).toBeLessThanOrEqual(most);
        }
      } finally {
        await client.end();
      }
    },
  );
});
