/** Others of the database are in the way: a long transaction on a lock's row, a stricter isolation. */
import { available } from 'holdfast-test-servers';
import pg from 'pg';
import { afterAll, describe, expect, it } from 'vitest';
import { postgresWorld } from '../faults/postgres-world.js';
import { expectExclusive, later, lossOf, Scene, SOON_MS } from '../faults/scene.js';

const WORLDS = { pg: postgresWorld('pg'), postgres: postgresWorld('postgres') };
const TTL_MS = 4_000;
const OTHERS = ['a', 'b', 'x', 'y', 'z'];

async function query(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(sql).finally(() => client.end());
}

describe.runIf(available('postgres')).concurrent('faults of rows', { timeout: 60_000 }, () => {
  afterAll(() => Promise.all(Object.values(WORLDS).map((world) => world.close())));

  for (const driver of ['pg', 'postgres'] as const) {
    it(`F30: a long transaction on one lock's row holds up no other renewal, claim or release (${driver})`, async ({
      onTestFinished,
    }) => {
      const scene = await Scene.open(WORLDS[driver], onTestFinished);
      const locks = await scene.locks({ ttlMs: TTL_MS });
      const stuck = await locks.acquire('k');
      const others = await Promise.all(OTHERS.map((name) => locks.acquire(name)));
      const user = new pg.Client({ connectionString: scene.server.url });
      await user.connect();
      onTestFinished(() => user.end());
      await user.query('BEGIN');
      const { rowCount } = await user.query("SELECT 1 FROM holdfast.records WHERE key LIKE '%/k' FOR UPDATE");
      expect(rowCount).toBe(1);
      await lossOf(stuck);
      // And for another lease's length, while the stuck key is asked for again and again.
      const waiting = later(locks.acquire('k', { wait: '50s' }));
      const untilMs = performance.now() + TTL_MS;
      while (performance.now() < untilMs) {
        const lease = await locks.acquire('passing', { wait: SOON_MS });
        await lease.release();
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      expect(others.map(({ key, held }) => [key, held])).toEqual(OTHERS.map((name) => [name, true]));
      await user.query('ROLLBACK');
      const next = await waiting;
      expect(next.token).toBeGreaterThan(stuck.token);
      scene.expectNothingUnhandled();
    });
  }

  it('a database that is serializable by default: failures to serialise are lived through, never two at once', async ({
    onTestFinished,
  }) => {
    const scene = await Scene.open(WORLDS.pg, onTestFinished);
    const name = new URL(scene.server.url).pathname.slice(1);
    await query(
      scene.server.url,
      `ALTER DATABASE ${name} SET default_transaction_isolation = 'serializable'`,
    );
    const fleet = await Promise.all(['a', 'b', 'c'].map((name) => scene.contender(name)));
    await Promise.all(fleet.map((child) => child.more(5)));
    expectExclusive(await scene.finish());
  });
});
