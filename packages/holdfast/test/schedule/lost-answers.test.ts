/** An answer of the store that was lost, for a moment in which the claim was executed all the same. */
import { describe, expect, it } from 'vitest';
import { StoreError } from '../../src/protocol/errors.js';
import { acquireTick, schedule } from '../../src/schedule/index.js';
import { watchOf } from '../engine/stage.js';
import { EPOCH_MS, type Instance, world } from './instances.js';

const MINUTE_MS = 60_000;

/**
 * The first claim of such a key is executed and its answer lost; then the instance reaches nothing until this much later.
 * Its own retries of that claim do not arrive.
 */
function loseAnswer({ store, clock }: Instance, isMeant: (key: string) => boolean, forMs: number): void {
  let fromMs: number | null = null;
  store.fate = ({ kind, key }) => {
    if (fromMs === null) {
      if (kind !== 'claim' || !isMeant(key)) return 'pass';
      fromMs = clock.monotonicMs();
      return 'reply-lost';
    }
    return clock.monotonicMs() - fromMs < forMs ? 'rejected' : 'pass';
  };
}

function fleet(opened: readonly Instance[]) {
  const ran: string[] = [];
  const errors: unknown[] = [];
  for (const { locks } of opened) {
    const work = (_: unknown, tick: Date) => ran.push(tick.toISOString());
    schedule(locks, 'job', { every: '10m' }, work, { onError: (error) => errors.push(error) });
  }
  return { ran, errors };
}

const toTick = (nowMs: number): number => 10 * MINUTE_MS - (nowMs % (10 * MINUTE_MS));

describe('a tick whose claim was executed and not answered', () => {
  it.each([1, 3])('is run all the same, once, by one of %i instances', async (count) => {
    const { time, nowMs, open } = world();
    const opened = Array.from({ length: count }, (_, at) => open(-at * 20));
    for (const each of opened.slice(0, 1)) loseAnswer(each, (key) => key.includes('@'), 6_000);
    const { ran, errors } = fleet(opened);
    await time.advance(toTick(nowMs()) + MINUTE_MS);
    expect(ran).toHaveLength(1);
    expect(errors).toEqual([]);
  });

  it('and never given back, is reported by those that could not run it', async () => {
    const { time, nowMs, open } = world();
    const [dying, other] = [open(), open(-20)];
    loseAnswer(dying, (key) => key.includes('@'), 600_000);
    const { ran, errors } = fleet([dying, other]);
    await time.advance(toTick(nowMs()));
    dying.clock.isDead = true;
    await time.advance(MINUTE_MS);
    expect(ran).toEqual([]);
    expect(errors).toHaveLength(1);
    expect(errors[0]).toMatchObject({ code: 'store', message: expect.stringContaining('i0 holds it') });
  });

  it('is waited for by acquireTick, up to 30 s', async () => {
    const { time, open } = world();
    const tick = new Date(EPOCH_MS + 100_000);
    await time.advance(99_000);
    const [losing, other] = [open(), open()];
    loseAnswer(losing, () => true, 6_000);
    const lost = watchOf(acquireTick(losing.locks, 'job', tick, { late: '1h' }));
    const asked = watchOf(acquireTick(other.locks, 'job', tick, { late: '1h' }));
    await time.advance(5_000);
    expect([lost.state, asked.state]).toEqual(['failed', 'pending']);
    expect(lost.error).toBeInstanceOf(StoreError);
    await time.advance(20_000);
    expect(asked).toMatchObject({ state: 'done', value: true });

    const dying = open();
    loseAnswer(dying, () => true, 600_000);
    const dead = watchOf(acquireTick(dying.locks, 'other', tick, { late: '1h' }));
    const waiting = watchOf(acquireTick(open().locks, 'other', tick, { late: '1h' }));
    await time.advance(20_000);
    expect([dead.state, waiting.state]).toEqual(['failed', 'pending']);
    await time.advance(15_000);
    expect(waiting.error).toBeInstanceOf(StoreError);
  });
});

describe('the lock of the work, claimed and not answered', () => {
  it('is asked for until the claim is given back: the tick is run', async () => {
    const { time, nowMs, open } = world();
    const one = open();
    loseAnswer(one, (key) => !key.includes('@'), 6_000);
    const { ran, errors } = fleet([one, open(-20)]);
    await time.advance(toTick(nowMs()) + MINUTE_MS);
    expect(ran).toHaveLength(1);
    expect(errors).toEqual([]);
  });

  it('and held by others for longer than the tick may be late, is reported', async () => {
    const { time, nowMs, open } = world();
    const one = open();
    await open().locks.acquire('job');
    loseAnswer(one, (key) => !key.includes('@'), 3_000);
    const { ran, errors } = fleet([one]);
    await time.advance(toTick(nowMs()) + MINUTE_MS);
    expect(ran).toEqual([]);
    expect(errors[0]).toBeInstanceOf(StoreError);
  });
});
