/** Whose turn it is, who is told and when: rule by rule. */
import { describe, expect, it } from 'vitest';
import { NAME_AGAIN_MS, WINDOW_HINT_MS, WINDOW_MS } from '../../src/protocol/index.js';
import { START } from './scripts.js';
import { claimBy, evictUpTo, releaseBy, renewBy, Table } from './table.js';

/** `a` holds; the others stand in line behind. */
function line(...waiters: string[]): Table {
  const table = new Table(START);
  table.say(claimBy('a', 1, { ttlMs: 400 }));
  for (const waiter of waiters) table.say(claimBy(waiter, 1, { ttlMs: 60_000 }));
  return table;
}

const bystander = renewBy('nobody', 1);

describe('the head of the queue', () => {
  it('F32: is named by whatever frees the key: release, eviction, expiry seen by any command, a dead head', () => {
    expect(line('b', 'c').turns(releaseBy('a', 1))).toEqual(['b']);
    expect(line('b', 'c').turns(evictUpTo(Number.MAX_SAFE_INTEGER))).toEqual(['b']);
    expect(line('b', 'c').turns(bystander, 400)).toEqual(['b']);
    const table = line('b', 'c');
    table.say(releaseBy('a', 1));
    expect(table.turns(bystander, WINDOW_MS)).toEqual(['c']);
  });

  it('is named again by every command once 50 ms have passed, until its window is over', () => {
    const table = line('b');
    table.say(releaseBy('a', 1));
    expect(table.turns(bystander, NAME_AGAIN_MS - 1)).toEqual([]);
    expect(table.turns(bystander, 1)).toEqual(['b']);
    expect(table.turns(bystander)).toEqual(['b']);
    expect(table.turns(bystander, WINDOW_MS - NAME_AGAIN_MS - 1)).toEqual(['b']);
    expect(table.turns(bystander, 1)).toEqual([]);
  });

  it('F19: is not overtaken while its window is open; those behind are asked to look again soon', () => {
    const table = line('b', 'c');
    table.say(releaseBy('a', 1));
    for (const claim of [claimBy('c', 1), claimBy('new', 1, { queue: false })]) {
      const { reply } = table.say(claim, 10);
      expect(reply).toMatchObject({ kind: 'busy', freeInMs: WINDOW_HINT_MS });
    }
    const late = table.say(claimBy('c', 1), WINDOW_MS - 50);
    expect(late.reply).toMatchObject({ kind: 'busy', freeInMs: 30 });
    expect(table.say(claimBy('b', 1), 29).reply.kind).toBe('granted');
  });

  it('F20: that misses its window holds nobody up, keeps its place, and is served when it comes', () => {
    const table = line('b', 'c');
    table.say(releaseBy('a', 1));
    expect(table.say(claimBy('c', 1), WINDOW_MS).reply.kind).toBe('granted');
    expect(table.say(claimBy('b', 1)).reply).toMatchObject({ kind: 'busy', position: 0 });
    table.say(claimBy('d', 1));
    expect(table.turns(releaseBy('c', 1))).toEqual(['b']);
  });

  it('returning late goes before the one woken in its stead, which is woken afresh', () => {
    const table = line('b', 'c');
    table.say(releaseBy('a', 1));
    expect(table.turns(bystander, WINDOW_MS)).toEqual(['c']);
    expect(table.say(claimBy('b', 1)).reply.kind).toBe('granted');
    expect(table.say(claimBy('c', 1)).reply).toMatchObject({ kind: 'busy', position: 0 });
    expect(table.state?.waiters[0]?.wokenAt).toBeNull();
    expect(table.turns(releaseBy('b', 1))).toEqual(['c']);
  });

  it('that leaves wakes the next at once', () => {
    const table = line('b', 'c');
    table.say(releaseBy('a', 1));
    expect(table.turns(releaseBy('b', 1))).toEqual(['c']);
  });

  it('replaced by a later claim of its process wakes the next, and the claimant knows to look again soon', () => {
    const table = line('b', 'c');
    table.say(releaseBy('a', 1));
    const { reply, wakes } = table.say(claimBy('b', 2, { queue: false }));
    expect(wakes).toEqual([{ inbox: 'c', why: 'turn' }]);
    expect(reply).toMatchObject({ kind: 'busy', freeInMs: WINDOW_HINT_MS });
  });

  it('without an inbox is waited for all the same', () => {
    const table = new Table(START);
    table.say(claimBy('a', 1));
    table.say(claimBy('b', 1, { inbox: null }));
    expect(table.say(releaseBy('a', 1)).wakes).toEqual([]);
    expect(table.say(claimBy('c', 1)).reply.kind).toBe('busy');
    expect(table.say(claimBy('b', 1)).reply.kind).toBe('granted');
  });
});

describe('several at once', () => {
  const reader = { capacity: 1_000 };
  const writer = { permits: 1_000, capacity: 1_000 };

  it('all that fit are woken together, up to the first that does not', () => {
    const table = new Table(START);
    table.say(claimBy('w', 1, writer));
    for (const process of ['r', 's']) table.say(claimBy(process, 1, reader));
    table.say(claimBy('x', 1, writer));
    table.say(claimBy('t', 1, reader));
    expect(table.turns(releaseBy('w', 1))).toEqual(['r', 's']);
    expect(table.say(claimBy('t', 1, reader)).reply.kind).toBe('busy');
    expect(table.say(claimBy('s', 1, reader)).reply.kind).toBe('granted');
    expect(table.say(claimBy('r', 1, reader)).reply.kind).toBe('granted');
  });

  it('a reader joins readers when nobody waits, and stands behind a waiting writer', () => {
    const table = new Table(START);
    table.say(claimBy('r', 1, reader));
    expect(table.say(claimBy('s', 1, reader)).reply.kind).toBe('granted');
    table.say(claimBy('w', 1, writer));
    expect(table.say(claimBy('t', 1, reader)).reply).toMatchObject({ kind: 'busy', position: 1 });
  });

  it('a large claim at the head is not starved by small ones behind it', () => {
    const table = new Table(START);
    table.say(claimBy('a', 1, { permits: 2, capacity: 3 }));
    table.say(claimBy('big', 1, { permits: 3, capacity: 3 }));
    expect(table.say(claimBy('small', 1, { capacity: 3 })).reply.kind).toBe('busy');
    expect(table.turns(releaseBy('a', 1))).toEqual(['big']);
  });

  it('a waiter that no longer fits loses its window', () => {
    const table = new Table(START);
    const one = { permits: 1, capacity: 2 };
    const both = { permits: 2, capacity: 2 };
    table.say(claimBy('a', 1, both));
    table.say(claimBy('dead', 1, both));
    table.say(claimBy('b', 1, one));
    table.say(releaseBy('a', 1));
    expect(table.turns(bystander, WINDOW_MS)).toEqual(['b']);
    expect(table.say(claimBy('dead', 1, both)).reply.kind).toBe('granted');
    expect(table.state?.waiters).toMatchObject([{ wokenAt: null }]);
    expect(table.turns(releaseBy('dead', 1), 10)).toEqual(['b']);
  });

  it('freeInMs speaks only of what stands before the claimant', () => {
    const table = line('b', 'c');
    expect(table.say(claimBy('b', 1), 100).reply).toMatchObject({ freeInMs: 300 });
    table.say(releaseBy('a', 1), 10);
    expect(table.say(claimBy('b', 1)).reply.kind).toBe('granted');
    expect(table.say(claimBy('c', 1)).reply).toMatchObject({ freeInMs: 10_000 });
  });
});
