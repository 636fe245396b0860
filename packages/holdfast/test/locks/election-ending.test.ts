/** How elections end: by the locks, by the iterator, by one signal for many. */
import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import type { Lease, Locks } from '../../src/api.js';
import { InvalidArgumentError } from '../../src/protocol/errors.js';
import { settle, stage, watchOf } from '../engine/stage.js';
import { candidate, observer } from './candidates.js';

describe('closing the locks', () => {
  it('ends a campaign and a term, and refuses a new election', async () => {
    const { clock, open } = stage();
    const leading = open({ owner: 'a' }).locks;
    const waiting = open({ owner: 'b' }).locks;
    const a = candidate(leading.elect('chief'));
    await settle();
    const b = candidate(waiting.elect('chief'));
    await settle();
    const closing = Promise.all([leading, waiting].map((locks: Locks) => locks.close({ drain: 0 })));
    await clock.advance(100);
    await closing;
    expect([a.loop.state, b.loop.state]).toEqual(['done', 'done']);
    expect(a.terms[0]?.signal.reason).toMatchObject({ reason: 'closed' });
    const again = candidate(leading.elect('chief'));
    await settle();
    expect(again.loop.error).toBeInstanceOf(InvalidArgumentError);
  });
});

describe('a leader that closes', () => {
  it('is told at once, leads until its body has ended, and hands over then, long before the drain is over', async () => {
    const { clock, open } = stage();
    const leading = open({ owner: 'a' }).locks;
    let stopped = (): void => undefined;
    const terms: Lease[] = [];
    void (async () => {
      for await (const term of leading.elect('chief')) {
        terms.push(term);
        await new Promise<void>((resolve) => {
          stopped = resolve;
        });
      }
    })();
    await settle();
    const b = candidate(open({ owner: 'b' }).locks.elect('chief'));
    await settle();
    const closing = watchOf(leading.close({ drain: '20s' }));
    expect(terms[0]?.signal.reason).toMatchObject({ code: 'lease-lost', reason: 'closed', key: 'chief' });
    await clock.advance(1_000);
    expect([terms[0]?.held, closing.state, b.terms.length]).toEqual([true, 'pending', 0]);
    stopped();
    await clock.advance(5);
    expect([terms[0]?.state, closing.state, b.terms.length]).toEqual(['released', 'done', 1]);
  });

  it('and goes on all the same, loses its term when the drain is over', async () => {
    const { clock, open } = stage();
    const { locks } = open();
    const terms: Lease[] = [];
    void (async () => {
      for await (const term of locks.elect('chief', { signal: new AbortController().signal })) {
        terms.push(term);
        await new Promise<never>(() => undefined);
      }
    })();
    await settle();
    const closing = watchOf(locks.close({ drain: '20s' }));
    await clock.advance(19_000);
    expect([terms[0]?.held, closing.state]).toEqual([true, 'pending']);
    await clock.advance(2_000);
    expect([terms[0]?.state, closing.state]).toEqual(['lost', 'done']);
  });
});

describe('return() of an iterator that waits', () => {
  it('ends a campaign at once, which leaves the queue and wins nothing', async () => {
    const { clock, open } = stage();
    const { locks } = open();
    const lease = await locks.acquire('chief');
    const terms = open().locks.elect('chief')[Symbol.asyncIterator]();
    const next = watchOf(terms.next());
    await clock.advance(1_000);
    const ended = watchOf(Promise.resolve(terms.return?.()));
    await clock.advance(10);
    expect([next, ended]).toMatchObject([{ value: { done: true } }, { value: { done: true } }]);
    expect((await locks.inspect('chief'))?.waiters).toEqual([]);
    await lease.release();
    await clock.advance(1_000);
    expect(await locks.inspect('chief')).toBeNull();
  });

  it('ends a term without aborting its signal', async () => {
    const { open } = stage();
    const { locks } = open();
    const terms = locks.elect('chief')[Symbol.asyncIterator]();
    const { value: term } = await terms.next();
    await terms.return?.();
    expect([term?.state, term?.signal.aborted]).toEqual(['released', false]);
    expect(await terms.next()).toMatchObject({ done: true });
  });

  it('ends an observer at once', async () => {
    const { clock, open } = stage();
    const changes = open().locks.elect('chief').observe({ every: '1h' })[Symbol.asyncIterator]();
    expect(await changes.next()).toEqual({ done: false, value: null });
    const next = watchOf(changes.next());
    await clock.advance(1_000);
    const ended = watchOf(Promise.resolve(changes.return?.()));
    await clock.advance(10);
    expect([next, ended]).toMatchObject([{ value: { done: true } }, { value: { done: true } }]);
  });
});

describe('throw() of an iterator that waits', () => {
  it('ends a campaign at once, which leaves the queue', async () => {
    const { clock, open } = stage();
    const { locks } = open();
    await locks.acquire('chief');
    const terms = open().locks.elect('chief')[Symbol.asyncIterator]();
    const next = watchOf(terms.next());
    await clock.advance(1_000);
    const ended = watchOf(Promise.resolve(terms.throw?.(new Error('left'))));
    await clock.advance(10);
    expect([next.value, ended.error]).toEqual([{ done: true, value: undefined }, new Error('left')]);
    expect((await locks.inspect('chief'))?.waiters).toEqual([]);
  });
});

describe('one signal for many', () => {
  it('gets one listener, and none is left behind', async () => {
    const { clock, open } = stage();
    const { locks } = open();
    const stop = new AbortController();
    const { signal } = stop;
    const all = Array.from({ length: 20 }, (_, at) => candidate(locks.elect(`chief ${at}`, { signal })));
    const observed = Array.from({ length: 20 }, () => observer(locks.elect('chief 1'), signal));
    await clock.advance(1_000);
    expect(all.every(({ terms }) => terms.length === 1)).toBe(true);
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    stop.abort();
    await clock.advance(1_000);
    expect([...all, ...observed].map(({ loop }) => loop.state)).toEqual(Array(40).fill('done'));
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});
