/** What a table `distributed_locks` takes: a lease that a renewal cut short, and metadata of another type. */
import { createLocks } from 'holdfast';
import { migrate, postgresStore } from 'holdfast/postgres';
import { distributedLocks } from 'holdfast/postgres/layouts';
import { available } from 'holdfast-test-servers';
import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { claimOf, estimatesAgree, freshName, say } from './fleet.js';
import { openFleet } from './postgres-fleet.js';
import { DISTRIBUTED_LOCKS } from './postgres-software.js';

describe.runIf(available('postgres'))('rows that the table distributed_locks takes', () => {
  const fleet = openFleet(DISTRIBUTED_LOCKS);

  it('a renewal that ends a lease before it began is written all the same', async () => {
    const store = fleet.store();
    const claim = claimOf(freshName(), 5_000);
    const { key, hold } = claim;
    const granted = await say(store, claim);
    const expiresAt = granted.kind === 'granted' ? granted.expiresAt : 0;
    const added = { ms: -6_000, expiresAt };
    expect(await say(store, { kind: 'renew', key, hold, ttlMs: 5_000, block: false, added })).toMatchObject({
      kind: 'renewed',
      expiresAt: expiresAt - 6_000,
    });
    await estimatesAgree();
    expect(await say(store, claimOf(key.slice('default/'.length), 5_000))).toMatchObject({ kind: 'granted' });
  });

  it('metadata may be of the type json', async () => {
    const client = new pg.Client({ connectionString: await fleet.server.createDatabase() });
    await client.connect();
    await migrate(client, { layout: distributedLocks });
    await client.query('ALTER TABLE distributed_locks ALTER metadata TYPE json');
    const locks = createLocks(postgresStore(client, { layout: distributedLocks }));
    for (const step of [1, 2]) {
      const lease = await locks.acquire('job', { metadata: { step } });
      await lease.renew();
      await lease.release();
    }
    await client.query(`UPDATE distributed_locks SET holder_id = 'somebody', metadata = '{"a":  1, "a": 2}',
      acquired_at = now(), expires_at = now() + interval '1 hour'`);
    expect(await locks.tryAcquire('job')).toBeNull();
    expect(await locks.evict('job')).toBe(1);
    await (await locks.acquire('job')).release();
    await locks.close();
    await client.end();
  });
});
