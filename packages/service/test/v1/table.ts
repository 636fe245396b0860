/** The contract, row by row: what is done, when, and what it gives. */
import { expect } from 'vitest';
import type { Scene } from './scene.js';

export const NAMES = { namespace: 'billing', lockName: 'order-1' };
const REFUSED = [423, { success: false, ...NAMES }];
const ENDED = [200, { success: true, ...NAMES }];
const FREE = [200, { ...NAMES }];

function held(instanceId: string, leaseDuration: number, expiry: number, owner = 'anonymous'): unknown[] {
  return [200, { success: true, ...NAMES, owner, instanceId, leaseDuration, expiry }];
}

export type Step =
  | { readonly pass: number }
  | { readonly look: 'free' | { readonly until: number } }
  | {
      readonly acquire: readonly [instance: string, seconds: number];
      readonly gives: { readonly lease: number; readonly until: number } | 423;
    }
  | {
      readonly renew: readonly [instance: string, seconds: number];
      readonly gives: { readonly lease: number; readonly until: number } | 423;
    }
  | { readonly release: string; readonly gives: 200 | 423 };

/** Times are seconds since the first step. */
export const TABLE: Readonly<Record<string, readonly Step[]>> = {
  'a lock that nobody holds is shown without owner and expiry': [{ look: 'free' }],
  'acquire grants for the lease, and GET shows owner and expiry': [
    { acquire: ['one', 60], gives: { lease: 60, until: 60 } },
    { look: { until: 60 } },
  ],
  'another instance is refused while the lock is held, and GET stays as it was': [
    { acquire: ['one', 60], gives: { lease: 60, until: 60 } },
    { acquire: ['two', 60], gives: 423 },
    { renew: ['two', 60], gives: 423 },
    { release: 'two', gives: 423 },
    { look: { until: 60 } },
  ],
  'a lock is active while expiry >= now: through its last second, and not longer': [
    { acquire: ['one', 2], gives: { lease: 2, until: 2 } },
    { pass: 2_000 },
    { acquire: ['two', 2], gives: 423 },
    { look: { until: 2 } },
    { pass: 590 },
    { acquire: ['two', 2], gives: 423 },
    { pass: 20 },
    { look: 'free' },
    { acquire: ['two', 5], gives: { lease: 5, until: 8 } },
  ],
  'renew adds to the lease and to the expiry': [
    { acquire: ['one', 60], gives: { lease: 60, until: 60 } },
    { pass: 10_000 },
    { renew: ['one', 60], gives: { lease: 120, until: 120 } },
    { renew: ['one', 1], gives: { lease: 121, until: 121 } },
    { look: { until: 121 } },
  ],
  'renew counts from the expiry, not from now': [
    { acquire: ['one', 60], gives: { lease: 60, until: 60 } },
    { pass: 1_100 },
    { renew: ['one', 60], gives: { lease: 120, until: 120 } },
    { pass: 1_100 },
    { acquire: ['one', 20], gives: { lease: 20, until: 22 } },
    { renew: ['one', 5], gives: { lease: 25, until: 27 } },
  ],
  'what was added is really held': [
    { acquire: ['one', 1], gives: { lease: 1, until: 1 } },
    { renew: ['one', 2], gives: { lease: 3, until: 3 } },
    { pass: 2_900 },
    { acquire: ['two', 60], gives: 423 },
    { pass: 1_000 },
    { acquire: ['two', 60], gives: { lease: 60, until: 64 } },
  ],
  'nothing is renewed that is missing, released or expired': [
    { renew: ['one', 60], gives: 423 },
    { acquire: ['one', 1], gives: { lease: 1, until: 1 } },
    { release: 'one', gives: 200 },
    { renew: ['one', 60], gives: 423 },
    { acquire: ['one', 1], gives: { lease: 1, until: 1 } },
    { pass: 2_000 },
    { renew: ['one', 60], gives: 423 },
    { look: 'free' },
  ],
  'the same identity may acquire again, for longer': [
    { acquire: ['one', 10], gives: { lease: 10, until: 10 } },
    { pass: 3_000 },
    { acquire: ['one', 60], gives: { lease: 60, until: 63 } },
    { look: { until: 63 } },
  ],
  'the same identity may acquire again, for a shorter time': [
    { acquire: ['one', 3_600], gives: { lease: 3_600, until: 3_600 } },
    { acquire: ['one', 1], gives: { lease: 1, until: 1 } },
    { look: { until: 1 } },
    { pass: 2_000 },
    { look: 'free' },
    { acquire: ['two', 60], gives: { lease: 60, until: 62 } },
  ],
  'a renewal adds to the lease as it was acquired last': [
    { acquire: ['one', 60], gives: { lease: 60, until: 60 } },
    { renew: ['one', 60], gives: { lease: 120, until: 120 } },
    { pass: 5_000 },
    { acquire: ['one', 30], gives: { lease: 30, until: 35 } },
    { pass: 2_000 },
    { renew: ['one', 10], gives: { lease: 40, until: 45 } },
  ],
  'an identity comes back: release and acquire, again and again': [
    { acquire: ['one', 60], gives: { lease: 60, until: 60 } },
    { release: 'one', gives: 200 },
    { acquire: ['one', 30], gives: { lease: 30, until: 30 } },
    { release: 'one', gives: 200 },
    { acquire: ['two', 30], gives: { lease: 30, until: 30 } },
    { release: 'two', gives: 200 },
    { acquire: ['one', 20], gives: { lease: 20, until: 20 } },
    { look: { until: 20 } },
  ],
  'release is a success when the lock is missing or expired, whoever asks': [
    { release: 'one', gives: 200 },
    { acquire: ['one', 1], gives: { lease: 1, until: 1 } },
    { release: 'one', gives: 200 },
    { release: 'one', gives: 200 },
    { release: 'two', gives: 200 },
    { acquire: ['one', 1], gives: { lease: 1, until: 1 } },
    { pass: 2_000 },
    { release: 'two', gives: 200 },
    { look: 'free' },
  ],
  'what was released is free at once': [
    { acquire: ['one', 60], gives: { lease: 60, until: 60 } },
    { release: 'one', gives: 200 },
    { look: 'free' },
    { acquire: ['two', 60], gives: { lease: 60, until: 60 } },
  ],
  'the longest lease is a day': [{ acquire: ['one', 86_400], gives: { lease: 86_400, until: 86_400 } }],
};

/** Real time cannot be told to jump, and is not exact to a few milliseconds. */
const LONG_MS = 2_500;
export const isForRealTime = (steps: readonly Step[]): boolean =>
  steps.every((step) => !('pass' in step) || step.pass <= LONG_MS) &&
  !steps.some((step) => 'pass' in step && step.pass < 1_000);

export async function follow(scene: Scene, rows: readonly Step[], isExact: boolean): Promise<void> {
  const steps = rows.map(padded);
  const startMs = performance.now();
  const start = await scene.second();
  let passedMs = 0;
  /** In real time seconds may end between two steps: as many as the steps took, and one. */
  const expecting = (answer: { status: number; body: object }, make: (late: number) => unknown[]): void => {
    // Where every test has a lock of its own, its name goes on.
    const body = 'lockName' in answer.body ? { ...answer.body, lockName: NAMES.lockName } : answer.body;
    const got = [answer.status, body];
    const secondsMax = isExact ? 0 : 1 + Math.ceil((performance.now() - startMs - passedMs) / 1_000);
    expect(Array.from({ length: secondsMax + 1 }, (_, late) => make(late))).toContainEqual(got);
  };
  for (const step of steps) {
    if ('pass' in step) {
      await scene.pass(step.pass);
      passedMs += step.pass;
    } else if ('look' in step) {
      const { look } = step;
      expecting(await scene.look('order-1'), (late) =>
        look === 'free' ? FREE : [200, { ...NAMES, owner: 'anonymous', expiry: start + look.until + late }],
      );
    } else if ('release' in step) {
      const { gives } = step;
      expecting(await scene.release1('order-1', step.release), () => (gives === 200 ? ENDED : REFUSED));
    } else {
      const [instance, seconds] = 'acquire' in step ? step.acquire : step.renew;
      const call = 'acquire' in step ? scene.acquire1 : scene.renew1;
      const { gives } = step;
      expecting(await call('order-1', instance.padEnd(5, '-'), seconds), (late) =>
        gives === 423 ? REFUSED : held(instance.padEnd(5, '-'), gives.lease, start + gives.until + late),
      );
    }
  }
}

/** Instances have at least three letters. */
function padded(step: Step): Step {
  return 'release' in step ? { ...step, release: step.release.padEnd(5, '-') } : step;
}
