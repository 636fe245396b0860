/** The end of a lease or a wait, through the real engine: nothing is left behind. */
import assert from 'node:assert/strict';
import { systemClock } from '../../clock.js';
import { ATTEMPT_MS } from '../../protocol/constants.js';
import { AcquireTimeoutError, LeaseLostError } from '../../protocol/index.js';
import { eventually, pause } from '../pause.js';
import { assertInTime, type CaseDefinition, claimOf, expectKind, send } from './case-context.js';
import { freeAgain, nth, USER_MS_MAX, withUsers } from './users.js';

export const leases: readonly CaseDefinition[] = [
  {
    name: 'P22: a waiter on another connection follows a release at once, not at the end of the ttl',
    async try(context) {
      const { name: key } = context;
      await withUsers(context, 2, async (users) => {
        const first = await nth(users, 0).acquire(key, { ttl: '10m' });
        const next = nth(users, 1).acquire(key);
        await pause(50);
        await first.release();
        const lease = await next;
        assert.ok(lease.token > first.token);
        await lease.release();
      });
    },
  },
  {
    name: 'F5: a wait that times out or is aborted leaves nothing in the store',
    async try(context) {
      const { name: key } = context;
      await withUsers(context, 2, async (users) => {
        const [holder, other] = [nth(users, 0), nth(users, 1)];
        const held = await holder.acquire(key);
        await assert.rejects(other.acquire(key, { wait: 80 }), AcquireTimeoutError);
        const reason = new Error('enough');
        const controller = new AbortController();
        const aborted = other.acquire(key, { signal: controller.signal });
        await pause(30);
        controller.abort(reason);
        await assert.rejects(aborted, (error) => error === reason);
        assert.equal(await other.tryAcquire(key), null, 'contention is no error in tryAcquire');
        await eventually('the queue is empty', USER_MS_MAX, async () => {
          return (await holder.inspect(key))?.waiters.length === 0;
        });
        await held.release();
        await freeAgain(holder, key);
        const next = await holder.tryAcquire(key);
        assert.ok(next, 'a withdrawn claim was granted');
      });
    },
  },
  {
    name: 'F9, P2: a lease that was lost releases nothing of its successor, who can release',
    async try(context) {
      const { name: key } = context;
      await withUsers(context, 2, async (users) => {
        const old = await nth(users, 0).acquire(key, { ttl: 80, renew: false });
        const next = await nth(users, 1).acquire(key);
        assert.equal(old.held, false);
        assert.equal(old.state, 'lost');
        assert.ok(old.signal.reason instanceof LeaseLostError);
        await old.release();
        next.assertHeld();
        assert.equal((await nth(users, 0).inspect(key))?.holders[0]?.owner, 'user 1');
        assert.ok(next.token > old.token);
        await next.release();
        await freeAgain(nth(users, 0), key);
      });
    },
  },
  {
    name: 'a lease that renews itself outlives its ttl many times over',
    async try(context) {
      const { name: key } = context;
      await withUsers(context, 2, async (users) => {
        const lease = await nth(users, 0).acquire(key, { ttl: 2_500 });
        const until = systemClock.monotonicMs() + 6_000;
        while (systemClock.monotonicMs() < until) {
          const claim = claimOf(`default/${key}`, context.newHold(), { queue: false });
          const reply = await send(context.store, claim);
          assertInTime(lease);
          expectKind(reply, 'busy', 'taken from a live holder');
          await pause(50);
        }
        lease.assertHeld();
        await lease.release();
      });
    },
  },
  {
    name: 'an evicted holder is told, with the reason, and the next token is higher',
    // An eviction that is not answered by then is sent again, and the second attempt finds nobody.
    withinMs: ATTEMPT_MS,
    async try(context) {
      const { name: key } = context;
      await withUsers(context, 2, async (users) => {
        const lease = await nth(users, 0).acquire(key, { ttl: 5_000 });
        assert.equal(await nth(users, 1).evict(key, { token: lease.token, reason: 'by an operator' }), 1);
        const next = await nth(users, 1).acquire(key);
        assert.ok(next.token > lease.token);
        await eventually('the evicted lease is lost', USER_MS_MAX, () => lease.signal.aborted);
        assert.equal(lease.held, false);
        const loss: unknown = lease.signal.reason;
        assert.ok(loss instanceof LeaseLostError);
        assertInTime(lease);
        assert.equal(loss.reason, 'evicted');
        assert.match(loss.message, /by an operator/);
        next.assertHeld();
      });
    },
  },
  {
    name: 'closing takes what is still held from its holder, and whoever waits elsewhere goes on',
    async try(context) {
      const { name: key } = context;
      await withUsers(context, 2, async (users) => {
        const lease = await nth(users, 0).acquire(key, { ttl: '10m' });
        const next = nth(users, 1).acquire(key);
        await pause(30);
        await nth(users, 0).close({ drain: 0 });
        assert.equal(lease.state, 'lost');
        assert.equal(lease.signal.aborted, true);
        assert.ok((await next).token > lease.token);
      });
    },
  },
];
