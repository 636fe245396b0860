import { available } from 'holdfast-test-servers';
import { describe, expect, it } from 'vitest';
import { claimOf, freshName, say, until } from './fleet.js';
import { fleetCases, openFleet } from './postgres-fleet.js';
import { DISTRIBUTED_LOCKS } from './postgres-software.js';

describe.runIf(available('postgres'))('a fleet on the layout distributed-locks', () => {
  const fleet = openFleet(DISTRIBUTED_LOCKS);
  fleetCases(fleet);

  it('released rows are cleaned up once they are expendable, and no row of the other software ever is', async () => {
    const [ours, theirs, held] = [freshName(), freshName(), freshName()];
    const store = fleet.store();
    const claim = claimOf(ours, 5_000);
    await say(store, claim);
    await say(store, { kind: 'release', key: claim.key, hold: claim.hold, minHoldMs: 0 });
    await fleet.change(
      ours,
      "acquired_at = acquired_at - interval '1 hour', expires_at = expires_at - interval '1 hour'",
    );
    await fleet.pool.query(
      `INSERT INTO distributed_locks VALUES ($1, 'somebody', now() - interval '9 days', now() - interval '8 days')`,
      [theirs],
    );
    await say(store, claimOf(held, 5_000));
    // Clean-up comes with commands, within half a minute.
    const isGone = async (): Promise<boolean> => {
      await say(store, claimOf(freshName(), 5_000));
      return (await fleet.record(ours)) === null;
    };
    await until('cleaned up', isGone, 90_000);
    expect(await fleet.record(theirs)).not.toBeNull();
    expect(await fleet.record(held)).not.toBeNull();
  });
});
