import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { guardLease } from '../src/run/lease-guard.js';

/** A lease that ends at a time, unless that is moved. */
class StandInLease {
  endsAt: number;
  readonly #lost = new AbortController();

  constructor(ttlMs: number) {
    this.endsAt = Date.now() + ttlMs;
  }

  get remainingMs(): number {
    return this.#lost.signal.aborted ? 0 : Math.max(0, this.endsAt - Date.now());
  }

  get held(): boolean {
    return this.remainingMs > 0;
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  lose(): void {
    this.#lost.abort();
  }
}

function watched(ttlMs: number, graceMs: number) {
  const lease = new StandInLease(ttlMs);
  const began = Date.now();
  const said: string[] = [];
  const guard = guardLease(lease, graceMs, {
    terminate: (leftMs) => said.push(`TERM at ${Date.now() - began}, ${leftMs} left`),
    kill: () => said.push(`KILL at ${Date.now() - began}`),
  });
  return { lease, said, guard };
}

describe('a command and its lease', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('gets TERM a grace before the deadline and KILL at it', () => {
    const { said, guard } = watched(30_000, 5_000);
    vi.advanceTimersByTime(24_999);
    expect(said).toEqual([]);
    expect(guard.intervened).toBe(false);
    vi.advanceTimersByTime(60_000);
    expect(said).toEqual(['TERM at 25000, 5000 left', 'KILL at 30000']);
    expect(guard.intervened).toBe(true);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is left alone while the lease is renewed', () => {
    const { lease, said } = watched(3_000, 750);
    for (let renewals = 0; renewals < 20; renewals++) {
      vi.advanceTimersByTime(1_000);
      lease.endsAt = Date.now() + 3_000;
    }
    expect(said).toEqual([]);
  });

  it('gets TERM once, and no KILL while a renewal that came late still holds', () => {
    const { lease, said } = watched(3_000, 750);
    vi.advanceTimersByTime(2_500);
    lease.endsAt = Date.now() + 3_000;
    vi.advanceTimersByTime(2_900);
    expect(said).toEqual(['TERM at 2250, 750 left']);
    vi.advanceTimersByTime(1_000);
    expect(said).toEqual(['TERM at 2250, 750 left', 'KILL at 5500']);
  });

  it('gets KILL at once when the lease is lost before its time', () => {
    const { lease, said } = watched(30_000, 5_000);
    vi.advanceTimersByTime(2_000);
    lease.lose();
    expect(said).toEqual(['KILL at 2000']);
  });

  it('F1: gets KILL at the first look after a pause that outlasted the lease', () => {
    const { lease, said } = watched(3_600_000, 5_000);
    lease.endsAt = Date.now() - 1;
    vi.advanceTimersByTime(1_000);
    expect(said).toEqual(['KILL at 1000']);
  });

  it('gets nothing more once it has ended', () => {
    const { lease, said, guard } = watched(3_000, 750);
    guard.stop();
    lease.lose();
    vi.advanceTimersByTime(10_000);
    expect(said).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });
});
