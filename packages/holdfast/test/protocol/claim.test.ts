/** Claims, rule by rule. */
import { describe, expect, it } from 'vitest';
import {
  HOLDERS_SHOWN,
  MARKS_MAX,
  QUEUE_MAX,
  READ_WRITE_CAPACITY,
  TOKEN_BLOCK,
} from '../../src/protocol/index.js';
import { START } from './scripts.js';
import { claimBy, evictUpTo, releaseBy, renewBy, Table } from './table.js';

describe('a claim', () => {
  it('of a free key is granted: the token is the time in microseconds, the block is reserved', () => {
    const { reply, state } = new Table(START).say(claimBy('a', 1, { ttlMs: 700, metadata: '{"x":1}' }));
    const token = START * 1_000;
    expect(reply).toEqual({
      kind: 'granted',
      token,
      tokenLast: token + TOKEN_BLOCK - 1,
      acquiredAt: START,
      expiresAt: START + 700,
      now: START,
      decision: START * 1_000,
      othersWait: false,
    });
    expect(state.token).toBe(token + TOKEN_BLOCK - 1);
  });

  it('F4: of what it holds already is the same grant, whatever it says now', () => {
    const table = new Table(START);
    const first = table.say(claimBy('a', 1, { ttlMs: 700 }));
    const again = table.say(claimBy('a', 1, { ttlMs: 9_999, owner: 'other', queue: false }), 699);
    expect(again.reply).toEqual({ ...first.reply, now: START + 699 });
    expect(again.changed).toBe(false);
  });

  it('is granted at the very millisecond of the expiry, and not one before', () => {
    const table = new Table(START);
    table.say(claimBy('a', 1, { ttlMs: 100 }));
    expect(table.say(claimBy('b', 1, { queue: false }), 99).reply).toMatchObject({
      kind: 'busy',
      freeInMs: 1,
    });
    expect(table.say(claimBy('b', 1, { queue: false }), 1).reply.kind).toBe('granted');
  });

  it('that is not to queue gets no place, and keeps the one it has', () => {
    const table = new Table(START);
    table.say(claimBy('a', 1));
    expect(table.say(claimBy('b', 1, { queue: false })).reply).toMatchObject({ position: null });
    expect(table.say(claimBy('b', 1)).reply).toMatchObject({ position: 0 });
    expect(table.say(claimBy('b', 1, { queue: false })).reply).toMatchObject({ position: 0 });
    expect(table.say(claimBy('c', 1)).reply).toMatchObject({ position: 1, othersWait: true });
  });

  it('keeps its place by claiming again, and a safety poll soon after another writes nothing', () => {
    const table = new Table(START);
    table.say(claimBy('a', 1, { ttlMs: 60_000 }));
    table.say(claimBy('b', 1));
    expect(table.say(claimBy('b', 1), 999).changed).toBe(false);
    expect(table.say(claimBy('b', 1), 1).changed).toBe(true);
    expect(table.say(claimBy('b', 1), 4_999).reply).toMatchObject({ position: 0 });
    expect(table.say(renewBy('a', 1), 5_000).state.waiters).toEqual([]);
    expect(table.say(claimBy('b', 1)).reply.kind).toBe('withdrawn');
  });

  it(`finds a line of ${QUEUE_MAX} full, and is told to poll`, () => {
    const table = new Table(START);
    table.say(claimBy('a', 1));
    for (let place = 0; place < QUEUE_MAX; place++) {
      expect(table.say(claimBy(`w${place}`, 1)).reply).toMatchObject({ position: place });
    }
    expect(table.say(claimBy('late', 1)).reply).toMatchObject({ kind: 'busy', position: null });
    expect(table.say(claimBy('w5', 1)).reply).toMatchObject({ position: 5 });
  });

  it('drops the earlier waiters of its process, and only those', () => {
    const table = new Table(START);
    table.say(claimBy('a', 1));
    for (const [process, number] of [
      ['b', 1],
      ['c', 1],
    ] as const) {
      table.say(claimBy(process, number));
    }
    expect(table.say(claimBy('b', 2)).reply).toMatchObject({ position: 1 });
    expect(table.say(claimBy('b', 1)).reply.kind).toBe('withdrawn');
    expect(table.state?.waiters.map(({ hold }) => hold)).toEqual([
      { process: 'c', number: 1 },
      { process: 'b', number: 2 },
    ]);
  });

  it('tells exclusive holders that others wait, each time it is answered busy, but not those of its own process', () => {
    const table = new Table(START);
    table.say(claimBy('a', 1));
    expect(table.say(claimBy('b', 1)).wakes).toEqual([{ inbox: 'a', why: 'waiting' }]);
    expect(table.say(claimBy('b', 1)).wakes).toEqual([{ inbox: 'a', why: 'waiting' }]);
    expect(table.say(claimBy('c', 1, { queue: false })).wakes).toEqual([]);
    expect(table.say(claimBy('a', 2)).wakes).toEqual([]);
    const shared = new Table(START);
    shared.say(claimBy('a', 1, { capacity: 2, permits: 1 }));
    shared.say(claimBy('b', 1, { capacity: 2, permits: 1 }));
    expect(shared.say(claimBy('c', 1, { capacity: 2 })).wakes).toEqual([]);
  });

  it('is shown at most 16 holders, cool-downs among them, and never a hold or an inbox', () => {
    const table = new Table(START);
    const capacity = HOLDERS_SHOWN + 2;
    for (let one = 0; one < capacity; one++)
      table.say(claimBy(`secret${one}`, 1, { capacity, owner: 'o', inbox: 'i' }));
    const { reply } = table.say(claimBy('b', 1, { capacity }));
    expect(reply.kind === 'busy' && reply.holders.length).toBe(HOLDERS_SHOWN);
    expect(JSON.stringify(reply)).not.toMatch(/secret|inbox/);
  });

  it('of several permits waits until as many are free', () => {
    const table = new Table(START);
    table.say(claimBy('a', 1, { permits: 2, capacity: 3 }));
    expect(table.say(claimBy('b', 1, { permits: 2, capacity: 3 })).reply.kind).toBe('busy');
    expect(table.say(claimBy('c', 1, { permits: 1, capacity: 3 })).reply.kind).toBe('busy');
    table.say(releaseBy('a', 1));
    expect(table.say(claimBy('b', 1, { permits: 2, capacity: 3 })).reply.kind).toBe('granted');
    expect(table.say(claimBy('c', 1, { permits: 1, capacity: 3 })).reply.kind).toBe('granted');
  });

  it('counts the smallest capacity that anybody concerned names', () => {
    const reader = { permits: 1, capacity: READ_WRITE_CAPACITY, queue: false };
    const mutex = new Table(START);
    mutex.say(claimBy('a', 1));
    expect(mutex.say(claimBy('r', 1, reader)).reply.kind).toBe('busy');
    const readers = new Table(START);
    readers.say(claimBy('r', 1, reader));
    expect(readers.say(claimBy('a', 1, { queue: false })).reply.kind).toBe('busy');
    expect(readers.say(claimBy('s', 1, reader)).reply.kind).toBe('granted');
    const woken = new Table(START);
    woken.say(claimBy('h', 1));
    woken.say(claimBy('a', 1));
    woken.say(releaseBy('h', 1));
    expect(woken.say(claimBy('r', 1, reader)).reply.kind).toBe('busy');
  });
});

describe('the marks of ended holds', () => {
  it('F27: refuse a claim at or below, after a release, a withdrawal, an expiry and an eviction', () => {
    const endings = {
      release: (table: Table) => table.say(releaseBy('a', 3)),
      expiry: (table: Table) => table.say(renewBy('x', 1), 20_000),
      eviction: (table: Table) => table.say(evictUpTo(Number.MAX_SAFE_INTEGER)),
    };
    for (const end of Object.values(endings)) {
      const table = new Table(START);
      table.say(claimBy('a', 3));
      end(table);
      expect(table.say(claimBy('a', 3)).reply.kind).toBe('withdrawn');
      expect(table.say(claimBy('a', 2)).reply.kind).toBe('withdrawn');
      expect(table.say(claimBy('a', 4)).reply.kind).toBe('granted');
    }
    const absent = new Table(START);
    expect(absent.say(releaseBy('a', 3)).reply).toMatchObject({ kind: 'released', held: false });
    expect(absent.say(claimBy('a', 3)).reply.kind).toBe('withdrawn');
  });

  it('are kept for 30 s', () => {
    const table = new Table(START);
    table.say(releaseBy('a', 1));
    expect(table.say(claimBy('a', 1), 29_999).reply.kind).toBe('withdrawn');
    expect(table.say(claimBy('a', 1), 1).reply.kind).toBe('granted');
  });

  it('never go down: a late release of an earlier hold leaves the mark', () => {
    const table = new Table(START);
    table.say(releaseBy('a', 5));
    table.say(releaseBy('a', 2));
    expect(table.say(claimBy('a', 4)).reply.kind).toBe('withdrawn');
  });

  it('do not touch what is held: an earlier hold of the process goes on', () => {
    const table = new Table(START);
    table.say(claimBy('a', 1, { capacity: 2 }));
    table.say(claimBy('a', 2, { capacity: 2 }));
    table.say(releaseBy('a', 2));
    expect(table.say(claimBy('a', 1)).reply.kind).toBe('granted');
    expect(table.say(renewBy('a', 1)).reply.kind).toBe('renewed');
  });

  it(`are at most ${MARKS_MAX}: the oldest go first`, () => {
    const table = new Table(START);
    for (let one = 0; one <= MARKS_MAX; one++) table.say(releaseBy(`p${one}`, 1));
    expect(table.state?.ended).toHaveLength(MARKS_MAX);
    expect(table.say(claimBy('p1', 1)).reply.kind).toBe('withdrawn');
    expect(table.say(claimBy('p0', 1)).reply.kind).toBe('granted');
  });

  it('take the waiters of their process along: none is left that could never be granted', () => {
    const table = new Table(START);
    table.say(claimBy('a', 1));
    table.say(claimBy('b', 1));
    table.say(claimBy('c', 1));
    table.say(releaseBy('b', 2));
    expect(table.state?.waiters.map(({ hold }) => hold.process)).toEqual(['c']);
    expect(table.turns(releaseBy('a', 1))).toEqual(['c']);
  });
});
