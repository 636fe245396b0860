/** The record of a key: its format, how long it is kept, and what of it is shown. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  checkVersion,
  decide,
  EMPTY_STATE,
  expendableAt,
  KEEP_MS,
  STATE_VERSION,
  snapshotOf,
  UnsupportedError,
  WINDOW_MS,
} from '../../src/protocol/index.js';
import { play, RUNS, START, scripts } from './scripts.js';
import { claimBy, releaseBy, renewBy, Table } from './table.js';

describe('the tokens of a key', () => {
  it('F10: rise across the deletion of its record, as soon as that is allowed', () => {
    fc.assert(
      fc.property(scripts, (script) => {
        const last = play(script).at(-1);
        if (!last) return;
        const at = expendableAt(last.state);
        expect(at).toBeGreaterThan(last.now);
        const { reply } = decide(null, claimBy('later', 1), at);
        expect(reply.kind === 'granted' && reply.token).toBeGreaterThan(last.state.token);
        expect(reply.decision).toBeGreaterThan(last.state.decision);
      }),
      RUNS,
    );
  });

  it('follow the clock when it is ahead, and count on when it is not', () => {
    const table = new Table(START);
    table.say(claimBy('a', 1));
    table.say(releaseBy('a', 1));
    expect(table.say(claimBy('b', 1)).reply).toMatchObject({ token: START * 1_000 + 1_024 });
    table.say(releaseBy('b', 1));
    expect(table.say(claimBy('c', 1), 5).reply).toMatchObject({ token: (START + 5) * 1_000 });
    table.say(releaseBy('c', 1));
    expect(table.say(claimBy('d', 1), -1_000).reply).toMatchObject({ token: (START + 5) * 1_000 + 1_024 });
  });

  it('are one each for what is shared', () => {
    const table = new Table(START);
    const first = table.say(claimBy('a', 1, { capacity: 2 })).reply;
    expect(first).toMatchObject({ token: START * 1_000, tokenLast: START * 1_000 });
    expect(table.say(claimBy('b', 1, { capacity: 2 })).reply).toMatchObject({ token: START * 1_000 + 1 });
  });

  it('are safe integers, or nothing is granted', () => {
    const worn = { ...EMPTY_STATE, token: Number.MAX_SAFE_INTEGER - 10 };
    expect(() => decide(worn, claimBy('a', 1), START)).toThrow(RangeError);
  });
});

describe('the record of a key', () => {
  it('may go only when all in it is over, the clock has passed its token, and 30 s have passed', () => {
    const table = new Table(START);
    table.say(claimBy('a', 1, { ttlMs: 100_000 }));
    expect(expendableAt(table.say(renewBy('a', 1)).state)).toBeGreaterThanOrEqual(START + 100_000 + KEEP_MS);
    table.say(releaseBy('a', 1));
    expect(expendableAt(table.say(renewBy('a', 1)).state)).toBeLessThanOrEqual(START + KEEP_MS + 2);
    expect(expendableAt({ ...EMPTY_STATE, token: (START + 90_000) * 1_000 })).toBe(START + 90_001);
    const rest = { owner: 'a', permits: 1, capacity: 1, token: 1, acquiredAt: 0, expiresAt: START + 80_000 };
    expect(expendableAt({ ...EMPTY_STATE, rests: [rest] })).toBe(START + 80_000);
    const eviction = { process: 'a', number: 1, reason: null, until: START + 70_000 };
    expect(expendableAt({ ...EMPTY_STATE, evictions: [eviction] })).toBe(START + 70_000);
  });

  it('shrinks to its token and marks at a release', () => {
    const table = new Table(START);
    table.say(claimBy('a', 1));
    const { state } = table.say(releaseBy('a', 1));
    expect({ ...state, token: 0, decision: 0 }).toEqual({
      ...EMPTY_STATE,
      ended: [{ process: 'a', number: 1, until: START + KEEP_MS }],
    });
    expect(JSON.stringify(state).length).toBeLessThan(200);
  });

  it('of a newer format is refused with a clear error, and so is nonsense', () => {
    expect(() => checkVersion(STATE_VERSION, 'k')).not.toThrow();
    for (const version of [STATE_VERSION + 1, 0, -1, Number.NaN, null, undefined, '1']) {
      expect(() => checkVersion(version, 'k')).toThrow(UnsupportedError);
    }
    expect(() => checkVersion(99, 'orders')).toThrow(/"orders".*99.*upgrade/);
  });
});

describe('a snapshot', () => {
  it('shows no hold, no inbox, and nothing that is over', () => {
    const table = new Table(START);
    table.say(claimBy('a', 1, { ttlMs: 100, owner: 'anna', inbox: 'hidden', metadata: '{"n":1}' }));
    table.say(claimBy('secret', 1, { owner: 'bert', inbox: 'hidden' }));
    const view = snapshotOf('k', table.state, START + 50);
    expect(view).toMatchObject({
      key: 'k',
      now: START + 50,
      holders: [{ owner: 'anna', metadata: '{"n":1}' }],
    });
    expect(JSON.stringify(view)).not.toMatch(/secret|hidden/);
    expect(snapshotOf('k', table.state, START + 100)).toMatchObject({
      holders: [],
      waiters: [{ owner: 'bert' }],
    });
    expect(snapshotOf('k', table.state, START + 60_000)).toBeNull();
    expect(snapshotOf('k', null, START)).toBeNull();
  });

  it('says who was woken, for as long as room is kept for it', () => {
    const table = new Table(START);
    table.say(claimBy('a', 1));
    table.say(claimBy('b', 1));
    expect(snapshotOf('k', table.state, START)?.waiters).toMatchObject([{ woken: false }]);
    table.say(releaseBy('a', 1));
    expect(snapshotOf('k', table.state, START)?.waiters).toMatchObject([{ woken: true }]);
    expect(snapshotOf('k', table.state, START + WINDOW_MS)?.waiters).toMatchObject([{ woken: false }]);
  });
});
