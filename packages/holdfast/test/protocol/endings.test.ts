/** Renewals, releases, rests and evictions, rule by rule. */
import { describe, expect, it } from 'vitest';
import {
  EMPTY_STATE,
  EVICTION_MS,
  EVICTIONS_MAX,
  expendableAt,
  TOKEN_BLOCK,
} from '../../src/protocol/index.js';
import { START } from './scripts.js';
import { claimBy, evictOne, evictUpTo, releaseBy, renewBy, Table } from './table.js';

describe('a renewal', () => {
  it('extends from now, and F28: never moves the expiry back', () => {
    const table = new Table(START);
    table.say(claimBy('a', 1, { ttlMs: 500 }));
    expect(table.say(renewBy('a', 1, { ttlMs: 500 }), 100).reply).toMatchObject({ expiresAt: START + 600 });
    expect(table.say(renewBy('a', 1, { ttlMs: 100 }), 100).reply).toMatchObject({ expiresAt: START + 600 });
  });

  it('F28: that adds names the expiry it saw, and applies to that one only', () => {
    const table = new Table(START);
    table.say(claimBy('a', 1, { ttlMs: 500 }));
    const addition = renewBy('a', 1, { added: { ms: 250, expiresAt: START + 500 } });
    expect(table.say(addition).reply).toMatchObject({ expiresAt: START + 750 });
    expect(table.say(addition)).toMatchObject({ changed: false, reply: { expiresAt: START + 750 } });
  });

  it('reserves a fresh block for an exclusive hold that asks, and for no other', () => {
    const table = new Table(START);
    table.say(claimBy('a', 1));
    const first = START * 1_000 + TOKEN_BLOCK;
    expect(table.say(renewBy('a', 1, { block: true })).reply).toMatchObject({
      block: { token: first, tokenLast: first + TOKEN_BLOCK - 1 },
    });
    expect(table.say(renewBy('a', 1)).reply).toMatchObject({ block: null });
    expect(table.state?.holders[0]?.token).toBe(START * 1_000);
    const shared = new Table(START);
    shared.say(claimBy('a', 1, { capacity: 2 }));
    expect(shared.say(renewBy('a', 1, { block: true })).reply).toMatchObject({
      kind: 'renewed',
      block: null,
    });
  });

  it('F6: brings nothing back: expired, released, evicted, waiting or never heard of is lost', () => {
    const table = new Table(START);
    const { reply } = table.say(claimBy('a', 1, { ttlMs: 100 }));
    table.say(claimBy('b', 1));
    expect(table.say(renewBy('b', 1)).reply.kind).toBe('lost');
    expect(table.say(renewBy('a', 1), 100).reply.kind).toBe('lost');
    expect(table.say(claimBy('b', 1)).reply.kind).toBe('granted');
    expect(table.say(renewBy('a', 1)).reply.kind).toBe('lost');
    table.say(releaseBy('b', 1));
    expect(table.say(renewBy('b', 1)).reply.kind).toBe('lost');
    table.say(claimBy('c', 1));
    table.say(evictUpTo(Number.MAX_SAFE_INTEGER));
    expect(table.say(renewBy('c', 1)).reply.kind).toBe('lost');
    expect(reply.kind).toBe('granted');
  });
});

describe('a release', () => {
  it('says whether it held, and F9: ends nothing of another', () => {
    const table = new Table(START);
    table.say(claimBy('a', 1));
    expect(table.say(releaseBy('b', 1)).reply).toMatchObject({ held: false });
    expect(table.say(releaseBy('a', 2)).reply).toMatchObject({ held: false });
    expect(table.say(renewBy('a', 1)).reply.kind).toBe('renewed');
    expect(table.say(releaseBy('a', 1)).reply).toMatchObject({ held: true });
    expect(table.say(releaseBy('a', 1)).reply).toMatchObject({ held: false });
  });

  it('of what expired says that it was not held: an expiry is never mistaken for a release', () => {
    const table = new Table(START);
    table.say(claimBy('a', 1, { ttlMs: 50 }));
    expect(table.say(releaseBy('a', 1), 50).reply).toMatchObject({ held: false });
  });

  it('leaves the queue, and the next moves up', () => {
    const table = new Table(START);
    for (const process of ['a', 'b', 'c']) table.say(claimBy(process, 1));
    table.say(releaseBy('b', 1));
    expect(table.say(claimBy('c', 1)).reply).toMatchObject({ position: 0 });
  });

  it('by a woken waiter passes its turn on', () => {
    const table = new Table(START);
    for (const process of ['a', 'b', 'c']) table.say(claimBy(process, 1));
    expect(table.turns(releaseBy('a', 1))).toEqual(['b']);
    expect(table.turns(releaseBy('b', 1))).toEqual(['c']);
  });
});

describe('a rest', () => {
  it('keeps the permits until minHold is over, belongs to nobody, and names the head', () => {
    const table = new Table(START);
    const granted = table.say(claimBy('a', 1, { metadata: '{}' })).reply;
    table.say(claimBy('b', 1));
    const { reply, wakes } = table.say(releaseBy('a', 1, 300), 100);
    expect(reply).toMatchObject({ kind: 'released', held: true });
    expect(wakes).toEqual([{ inbox: 'b', why: 'turn' }]);
    expect(table.say(renewBy('a', 1)).reply.kind).toBe('lost');
    expect(table.say(claimBy('a', 1)).reply.kind).toBe('withdrawn');
    expect(table.say(releaseBy('a', 1)).reply).toMatchObject({ held: false });
    const { reply: busy } = table.say(claimBy('b', 1));
    expect(busy).toMatchObject({ kind: 'busy', freeInMs: 200, position: 0 });
    expect(busy.kind === 'busy' && busy.holders).toEqual([
      {
        owner: 'a',
        permits: 1,
        capacity: 1,
        token: granted.kind === 'granted' ? granted.token : 0,
        acquiredAt: START,
        expiresAt: START + 300,
        metadata: null,
        resting: true,
      },
    ]);
    expect(table.say(claimBy('b', 1), 199).reply.kind).toBe('busy');
    expect(table.say(claimBy('b', 1), 1).reply.kind).toBe('granted');
  });

  it('is not left by a release after minHold, nor by a grant given back unused', () => {
    const table = new Table(START);
    table.say(claimBy('a', 1));
    table.say(releaseBy('a', 1, 300), 300);
    expect(table.say(claimBy('b', 1)).reply.kind).toBe('granted');
    table.say(releaseBy('b', 1, 0));
    expect(table.say(claimBy('c', 1)).reply.kind).toBe('granted');
  });

  it('is ended by an evict that saw its token', () => {
    const table = new Table(START);
    table.say(claimBy('a', 1));
    table.say(releaseBy('a', 1, 300));
    expect(table.say(evictUpTo(START * 1_000)).reply).toMatchObject({ kind: 'evicted', count: 1 });
    expect(table.say(claimBy('b', 1)).reply.kind).toBe('granted');
  });
});

describe('an evict', () => {
  it('F31: ends the holds up to the token seen; a second one ends nobody new', () => {
    const table = new Table(START);
    table.say(claimBy('a', 1));
    table.say(claimBy('b', 1));
    const evict = evictUpTo(START * 1_000);
    const { reply, wakes } = table.say(evict);
    expect(reply).toMatchObject({ kind: 'evicted', count: 1 });
    expect(wakes).toEqual([
      { inbox: 'a', why: 'evicted' },
      { inbox: 'b', why: 'turn' },
    ]);
    expect(table.say(claimBy('b', 1)).reply.kind).toBe('granted');
    expect(table.say(evict).reply).toMatchObject({ count: 0 });
    expect(table.say(renewBy('b', 1)).reply.kind).toBe('renewed');
  });

  it('spares the holders above the token', () => {
    const table = new Table(START);
    table.say(claimBy('a', 1, { capacity: 2 }));
    table.say(claimBy('b', 1, { capacity: 2 }));
    expect(table.say(evictUpTo(START * 1_000)).reply).toMatchObject({ count: 1 });
    expect(table.state?.holders.map(({ owner }) => owner)).toEqual(['b']);
  });

  it('F31: of one token ends that holder, and nobody else', () => {
    const table = new Table(START);
    const tokens = ['a', 'b', 'c'].map((process) => {
      const { reply } = table.say(claimBy(process, 1, { capacity: 3 }));
      return reply.kind === 'granted' ? reply.token : 0;
    });
    const evict = evictOne(tokens[1] ?? 0);
    const { reply, wakes } = table.say(evict);
    expect(reply).toMatchObject({ kind: 'evicted', count: 1 });
    expect(wakes).toEqual([{ inbox: 'b', why: 'evicted' }]);
    expect(table.state?.holders.map(({ owner }) => owner)).toEqual(['a', 'c']);
    table.say(claimBy('d', 1, { capacity: 3 }));
    expect(table.say(evict).reply).toMatchObject({ count: 0 });
  });

  it('of one token finds an exclusive hold, or its cool-down, by every token reserved since its grant', () => {
    const table = new Table(START);
    const grant = table.say(claimBy('a', 1)).reply;
    const renewal = table.say(renewBy('a', 1, { block: true })).reply;
    const last = renewal.kind === 'renewed' ? (renewal.block?.tokenLast ?? 0) : 0;
    expect(last).toBeGreaterThan(grant.kind === 'granted' ? grant.tokenLast : last);
    expect(table.say(evictOne(START * 1_000 - 1)).reply).toMatchObject({ count: 0 });
    expect(table.say(evictOne(last + 1)).reply).toMatchObject({ count: 0 });
    expect(table.say(evictOne(last)).reply).toMatchObject({ count: 1 });
    table.say(claimBy('b', 1));
    table.say(releaseBy('b', 1, 300));
    expect(table.say(evictOne(last)).reply).toMatchObject({ count: 0 });
    expect(table.say(evictOne(last + 2)).reply).toMatchObject({ count: 1 });
  });

  it('is known to the evicted until it would have expired, with the reason', () => {
    const table = new Table(START);
    table.say(claimBy('a', 1, { ttlMs: 100 }));
    table.say(evictUpTo(Number.MAX_SAFE_INTEGER, 'drained'));
    expect(table.say(claimBy('b', 1)).reply.kind).toBe('granted');
    const lost = table.say(renewBy('a', 1), 99);
    expect(lost.reply).toMatchObject({ kind: 'lost', evicted: { reason: 'drained' } });
    expect(lost.changed).toBe(false);
    const over = table.say(renewBy('a', 1), 1);
    expect(over.reply).not.toHaveProperty('evicted');
    // Dropped by the next write, and no reason for one.
    expect([over.changed, over.state.evictions.length]).toEqual([false, 1]);
    expect(table.say(releaseBy('b', 1)).state.evictions).toEqual([]);
  });

  it('is known for ten minutes at most: then the record is as small as any other', () => {
    const table = new Table(START);
    table.say(claimBy('a', 1, { ttlMs: 7 * 86_400_000 }));
    table.say(evictUpTo(Number.MAX_SAFE_INTEGER, 'drained'));
    expect(expendableAt(table.state ?? EMPTY_STATE)).toBe(START + EVICTION_MS);
    const lost = table.say(renewBy('a', 1), EVICTION_MS - 1);
    expect(lost.reply).toMatchObject({ kind: 'lost', evicted: { reason: 'drained' } });
    const late = table.say(renewBy('a', 1), 1);
    expect(late.reply.kind).toBe('lost');
    expect(late.reply).not.toHaveProperty('evicted');
    expect(table.say(claimBy('b', 1)).state.evictions).toEqual([]);
  });

  it('is known to the last 16 that were evicted', () => {
    expect(EVICTIONS_MAX).toBe(16);
    const table = new Table(START);
    const shared = { capacity: 1_000 };
    for (let n = 1; n <= EVICTIONS_MAX + 2; n++) table.say(claimBy(`p${n}`, 1, shared));
    table.say(evictUpTo(Number.MAX_SAFE_INTEGER));
    expect(table.state?.evictions).toHaveLength(EVICTIONS_MAX);
    expect(table.say(renewBy('p2', 1)).reply).not.toHaveProperty('evicted');
    expect(table.say(renewBy('p3', 1)).reply).toMatchObject({ evicted: { reason: null } });
  });

  it('F9: ends no waiter', () => {
    const table = new Table(START);
    table.say(claimBy('a', 1));
    table.say(claimBy('b', 1));
    table.say(evictUpTo(Number.MAX_SAFE_INTEGER));
    expect(table.say(claimBy('b', 1)).reply.kind).toBe('granted');
  });
});

describe('an expiry', () => {
  it('F27: takes the waiters of its process at or below it out of the queue, though others expire with it', () => {
    const table = new Table(START);
    table.say(claimBy('p', 5, { ttlMs: 5_500 }));
    table.say(claimBy('p', 4));
    table.say(claimBy('q', 1));
    table.say(claimBy('p', 4), 1_500);
    const { reply } = table.say(claimBy('r', 1), 4_100);
    expect(table.state?.waiters.map(({ hold }) => hold.process)).not.toContain('p');
    expect(reply.kind).toBe('granted');
  });
});
