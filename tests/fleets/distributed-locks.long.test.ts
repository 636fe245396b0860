import { seededRandom } from 'holdfast/testkit';
import { available } from 'holdfast-test-servers';
import { describe, expect, it } from 'vitest';
import { Child } from '../faults/child.js';
import { crowdings } from '../faults/journal.js';
import { claimOf, freshName, pause, say, until } from './fleet.js';
import { fleetCases, openFleet } from './postgres-fleet.js';
import { DISTRIBUTED_LOCKS } from './postgres-software.js';

const OURS = new URL('../faults/contender.js', import.meta.url);
const THEIRS = new URL('./old-contender.js', import.meta.url);

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

  it('processes of both kinds, killed with the lock in hand and replaced, never overlap', async ({
    onTestFinished,
  }) => {
    const random = seededRandom(Date.now() % 1_000_000);
    const key = freshName();
    const all: Child[] = [];
    onTestFinished(async () => {
      for (const child of all) await child.kill();
    });
    const start = (kind: 'ours' | 'theirs'): Child => {
      const name = `${kind}-${all.length}`;
      const task = { url: kind === 'ours' ? fleet.url : fleet.databaseUrl, name, key };
      const ours = {
        driver: 'pg',
        ttlMs: 1_500,
        workMs: 5,
        longMs: 5,
        longEvery: 10,
        restMs: 40,
        waitMs: 3_000,
        capacity: 1,
        contenders: 1,
      };
      const script = kind === 'ours' ? OURS : THEIRS;
      const child = new Child(name, script, [JSON.stringify(kind === 'ours' ? { ...task, ...ours } : task)]);
      all.push(child);
      return child;
    };
    const live = { ours: [start('ours'), start('ours')], theirs: [start('theirs'), start('theirs')] };
    for (let deaths = 0; deaths < 8; deaths++) {
      for (const kind of ['ours', 'theirs'] as const) {
        await live[kind][0]?.more(2);
        await pause(random.between(0, 200));
        await live[kind].shift()?.kill();
        live[kind].push(start(kind));
      }
    }
    await Promise.all([...live.ours, ...live.theirs].map((child) => child.more(1)));
    for (const child of [...live.ours, ...live.theirs]) expect(await child.finish(), child.story).toBe(0);
    expect(crowdings(all.flatMap(({ turns }) => turns))).toEqual([]);
  });
});
