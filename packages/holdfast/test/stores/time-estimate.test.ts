import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Clock } from '../../src/clock.js';
import { TimeEstimate } from '../../src/stores/compare-and-swap/index.js';

/** A process's two clocks and a store's, moved by hand. */
class Clocks {
  monotonic = 5_000;
  wall = 1_700_000_000_000;
  store = 1_800_000_000_000;

  pass(ms: number, drift = 0): void {
    this.monotonic += ms;
    this.wall += ms;
    this.store += ms * (1 + drift);
  }

  readonly clock = {
    monotonicMs: () => this.monotonic,
    wallMs: () => this.wall,
  } as Clock;
}

function told(clocks: Clocks, estimate: TimeEstimate, thereMs: number, backMs: number): void {
  const sent = clocks.monotonic;
  clocks.pass(thereMs);
  const second = Math.floor(clocks.store / 1_000) * 1_000;
  clocks.pass(backMs);
  estimate.note(sent, clocks.monotonic, second, second + 1_000);
}

describe('the time of a store that tells it with its replies', () => {
  it('is not learnt from a reply that the machine slept through, nor from one that was sent before', () => {
    const clocks = new Clocks();
    const estimate = new TimeEstimate(0, clocks.clock);
    const sent = clocks.monotonic;
    clocks.pass(5);
    const time = clocks.store;
    // Asleep: the monotonic clock stands still.
    clocks.wall += 2_000;
    clocks.store += 2_000;
    clocks.pass(5);
    estimate.note(sent, clocks.monotonic, time, time);
    expect(estimate.reading()).toBeNull();
    estimate.note(sent, clocks.monotonic, time, time);
    expect(estimate.reading()).toBeNull();
    told(clocks, estimate, 1, 1);
    expect(estimate.reading()?.latest).toBeGreaterThanOrEqual(clocks.store);
    expect(estimate.jumps).toBe(0);
  });

  it('is not known before it is told', () => {
    const { clock } = new Clocks();
    expect(new TimeEstimate(0, clock).reading()).toBeNull();
  });

  it('always lies between the earliest and the latest, whatever the way takes and however clocks drift', () => {
    const step = fc.record({
      idle: fc.integer({ min: 0, max: 30_000 }),
      there: fc.integer({ min: 0, max: 900 }),
      back: fc.integer({ min: 0, max: 900 }),
      drift: fc.double({ min: -0.0004, max: 0.0004, noNaN: true }),
    });
    void fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 40 }), (steps) => {
        const clocks = new Clocks();
        const estimate = new TimeEstimate(0, clocks.clock);
        for (const { idle, there, back, drift } of steps) {
          clocks.pass(idle, drift);
          const before = estimate.reading();
          if (before) {
            expect(before.earliest).toBeLessThanOrEqual(clocks.store);
            expect(before.latest).toBeGreaterThanOrEqual(clocks.store);
          }
          told(clocks, estimate, there, back);
          const reading = estimate.reading();
          expect(reading?.earliest).toBeLessThanOrEqual(clocks.store);
          expect(reading?.latest).toBeGreaterThanOrEqual(clocks.store);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('becomes exact to the round trip where whole seconds tick over', () => {
    const clocks = new Clocks();
    const estimate = new TimeEstimate(0, clocks.clock);
    for (let replies = 0; replies < 300; replies++) {
      told(clocks, estimate, 2, 2);
      clocks.pass(1);
    }
    const reading = estimate.reading();
    expect(reading && reading.latest - reading.earliest).toBeLessThan(14);
  });

  it('is forgotten once the machine slept or its clock was set, and known again when told', () => {
    const clocks = new Clocks();
    const estimate = new TimeEstimate(0, clocks.clock);
    told(clocks, estimate, 1, 1);
    clocks.wall += 60_000;
    clocks.store += 60_000;
    expect(estimate.reading()).toBeNull();
    expect(estimate.isFresh()).toBe(false);
    told(clocks, estimate, 1, 1);
    const reading = estimate.reading();
    expect(reading?.earliest).toBeLessThanOrEqual(clocks.store);
    expect(reading?.latest).toBeGreaterThanOrEqual(clocks.store);
  });

  it('is not forgotten because the process was held up between two looks at its clocks', () => {
    const clocks = new Clocks();
    let heldUpMs = 0;
    const slow = {
      monotonicMs: () => clocks.monotonic,
      wallMs() {
        clocks.pass(heldUpMs);
        const { wall } = clocks;
        clocks.pass(heldUpMs);
        return wall;
      },
    } as Clock;
    const estimate = new TimeEstimate(0, slow);
    told(clocks, estimate, 1, 1);
    heldUpMs = 40;
    expect(estimate.reading()).not.toBeNull();
    told(clocks, estimate, 1, 1);
    heldUpMs = 0;
    expect(estimate.reading()).not.toBeNull();
    clocks.wall += 60;
    expect(estimate.reading()).toBeNull();
  });

  it('is in doubt between two servers that contradict each other', () => {
    const clocks = new Clocks();
    const estimate = new TimeEstimate(0, clocks.clock);
    estimate.note(clocks.monotonic, clocks.monotonic, clocks.store, clocks.store);
    estimate.note(clocks.monotonic, clocks.monotonic, clocks.store + 5_000, clocks.store + 5_000);
    expect(estimate.reading()).toEqual({ earliest: clocks.store, latest: clocks.store + 5_000 });
  });

  it('servers that differ by less than is allowed for are no contradiction', () => {
    const clocks = new Clocks();
    const estimate = new TimeEstimate(10, clocks.clock);
    estimate.note(clocks.monotonic, clocks.monotonic, clocks.store, clocks.store);
    estimate.note(clocks.monotonic, clocks.monotonic, clocks.store + 8, clocks.store + 8);
    expect(estimate.reading()).toEqual({ earliest: clocks.store - 10, latest: clocks.store + 18 });
    expect(estimate.jumps).toBe(0);
    estimate.note(clocks.monotonic, clocks.monotonic, clocks.store + 60_000, clocks.store + 60_000);
    expect(estimate.jumps).toBe(1);
  });

  it('a stamp in the past only moves the earliest', () => {
    const clocks = new Clocks();
    const estimate = new TimeEstimate(0, clocks.clock);
    estimate.noteAtLeast(clocks.monotonic, clocks.store);
    expect(estimate.reading()).toBeNull();
    estimate.note(clocks.monotonic, clocks.monotonic, clocks.store - 500, clocks.store + 500);
    estimate.noteAtLeast(clocks.monotonic, clocks.store - 10);
    expect(estimate.reading()).toEqual({ earliest: clocks.store - 10, latest: clocks.store + 500 });
    estimate.noteAtLeast(clocks.monotonic, clocks.store - 200);
    expect(estimate.reading()?.earliest).toBe(clocks.store - 10);
  });

  it('pads both sides by what its servers may differ', () => {
    const clocks = new Clocks();
    const estimate = new TimeEstimate(10, clocks.clock);
    estimate.note(clocks.monotonic, clocks.monotonic, clocks.store, clocks.store);
    expect(estimate.reading()).toEqual({ earliest: clocks.store - 10, latest: clocks.store + 10 });
  });
});
