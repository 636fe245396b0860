import { describe, expect, it } from 'vitest';
import type { Leader, Lease, Locks } from '../../src/api.js';
import {
  InvalidArgumentError,
  LeaseLostError,
  NotExecutedError,
  StoreError,
} from '../../src/protocol/errors.js';
import { settle, stage, watchOf } from '../engine/stage.js';
import { candidate, observer, owners } from './candidates.js';

describe('an election', () => {
  it('has one leader at a time; one that leaves the loop hands over at once, with a higher term', async () => {
    const { clock, open } = stage();
    const a = candidate(open({ owner: 'a' }).locks.elect('chief'));
    await settle();
    const b = candidate(open({ owner: 'b' }).locks.elect('chief'));
    await clock.advance(3_000);
    expect(a.terms).toHaveLength(1);
    expect(b.terms).toHaveLength(0);
    a.quit();
    await clock.advance(5);
    expect(a.loop.state).toBe('done');
    expect(a.terms[0]?.state).toBe('released');
    expect(b.terms[0]?.token).toBeGreaterThan(a.terms[0]?.token ?? Number.POSITIVE_INFINITY);
  });

  it.each(['a body that ends', 'a body that ends, without metadata and in one process'])(
    '%s is done leading: the next one leads, and it campaigns again behind the others',
    async (what) => {
      const { clock, open } = stage();
      const { locks } = open({ owner: 'a' });
      const others = what.endsWith('process') ? locks : open({ owner: 'b' }).locks;
      const a = candidate(locks.elect('chief'));
      await settle();
      const b = candidate(others.elect('chief'));
      await clock.advance(1_000);
      a.finish();
      await clock.advance(1_000);
      expect([a.terms.length, b.terms.length]).toEqual([1, 1]);
      b.finish();
      await clock.advance(1_000);
      expect([a.terms.length, b.terms.length]).toEqual([2, 1]);
      expect(a.terms[1]?.held).toBe(true);
    },
  );

  it('is left by an error of the body, which the caller gets, and the term is released', async () => {
    const { open } = stage();
    const { locks } = open();
    const failing = (async () => {
      for await (const term of locks.elect('chief')) throw new Error(`no luck in term ${term.state}`);
    })();
    await expect(failing).rejects.toThrow('no luck in term held');
    expect(await locks.inspect('chief')).toBeNull();
  });

  it('goes on after a term that was lost: its signal aborts, and the loop campaigns again', async () => {
    const { clock, open } = stage();
    const { locks } = open({ owner: 'a' });
    const a = candidate(locks.elect('chief'));
    await settle();
    expect(await open().locks.evict('chief')).toBe(1);
    await clock.advance(100);
    expect(a.terms[0]?.signal.reason).toBeInstanceOf(LeaseLostError);
    expect(a.terms).toHaveLength(2);
    expect(a.terms[1]?.held).toBe(true);
  });

  it('has a new leader within ttl + 250 ms of the death of the old one', async () => {
    const { clock, open } = stage();
    const dying = open({ owner: 'a' });
    const a = candidate(dying.locks.elect('chief', { ttl: '3s' }));
    await settle();
    const b = candidate(open({ owner: 'b' }).locks.elect('chief', { ttl: '3s' }));
    await clock.advance(7_500);
    dying.store.fate = () => 'lost';
    await clock.advance(3_250);
    expect(b.terms).toHaveLength(1);
    expect(a.terms[0]?.state).toBe('lost');
  });
});

describe('the signal of an election', () => {
  it('ends a campaign without an error, and leaves the queue', async () => {
    const { clock, open } = stage();
    const { locks } = open();
    await locks.acquire('chief');
    const stop = new AbortController();
    const b = candidate(open().locks.elect('chief', { signal: stop.signal }));
    await clock.advance(1_000);
    expect((await locks.inspect('chief'))?.waiters).toHaveLength(1);
    stop.abort();
    await clock.advance(10);
    expect(b).toMatchObject({ loop: { state: 'done' }, terms: [] });
    expect((await locks.inspect('chief'))?.waiters).toHaveLength(0);
  });

  it('tells the body of a term, which leads until it has ended', async () => {
    const { clock, open } = stage();
    const { locks } = open();
    const stop = new AbortController();
    let stopped = (): void => undefined;
    const terms: Lease[] = [];
    const loop = watchOf(
      (async () => {
        for await (const term of locks.elect('chief', { signal: stop.signal })) {
          terms.push(term);
          await new Promise<void>((resolve) => {
            stopped = resolve;
          });
        }
      })(),
    );
    await settle();
    const reason = new Error('shutting down');
    stop.abort(reason);
    await clock.advance(20_000);
    const [term] = terms;
    expect(term?.signal.reason).toBe(reason);
    expect(term?.held).toBe(true);
    term?.assertHeld();
    await term?.renew();
    expect((await locks.elect('chief').leader())?.token).toBe(term?.token);
    stopped();
    await settle();
    expect(loop.state).toBe('done');
    expect(term?.state).toBe('released');
    expect(await locks.inspect('chief')).toBeNull();
  });

  it('does not hide the loss of a term', async () => {
    const { clock, open } = stage();
    const { locks } = open();
    const a = candidate(locks.elect('chief', { signal: new AbortController().signal }));
    await settle();
    await open().locks.evict('chief');
    await clock.advance(100);
    expect(a.terms[0]?.signal.reason).toBeInstanceOf(LeaseLostError);
    expect(a.terms).toHaveLength(2);
  });

  it('may have aborted before', async () => {
    const { open } = stage();
    const a = candidate(open().locks.elect('chief', { signal: AbortSignal.abort() }));
    await settle();
    expect(a).toMatchObject({ loop: { state: 'done' }, terms: [] });
  });
});

describe('a store that fails', () => {
  it.each(['lost', 'rejected'] as const)('does not end a campaign: %s', async (fate) => {
    const { clock, open } = stage();
    const { locks, store } = open();
    store.fate = () => fate;
    const a = candidate(locks.elect('chief'));
    await clock.advance(600_000);
    expect(a.loop.state).toBe('pending');
    expect(a.terms).toHaveLength(0);
    store.fate = () => 'pass';
    await clock.advance(60_000);
    expect(a.terms).toHaveLength(1);
  });

  it('and refuses for good is told to the caller, unless it has answered before', async () => {
    const { clock, open } = stage();
    const { locks, store } = open();
    const apply = store.apply.bind(store);
    const refuse = (): never => {
      throw new NotExecutedError('no such user', 'never');
    };
    store.apply = (commands) => commands.map(async () => refuse());
    const early = candidate(locks.elect('chief'));
    await settle();
    expect(early.loop.error).toBeInstanceOf(StoreError);
    store.apply = apply;
    await locks.withLock('other', () => undefined);
    const causes: unknown[] = [];
    locks.on('not-acquired', ({ cause }) => causes.push(cause));
    store.apply = (commands) => commands.map(async () => refuse());
    const late = candidate(locks.elect('chief'));
    await clock.advance(60_000);
    expect(late.loop.state).toBe('pending');
    expect(causes.length).toBeGreaterThan(2);
    expect(causes.length).toBeLessThan(20);
    store.apply = apply;
    await clock.advance(30_000);
    expect(late.terms).toHaveLength(1);
  });
});

describe('who leads', () => {
  it('is told by one read, without contending: owner, metadata, term and since', async () => {
    const { open } = stage();
    const { locks } = open();
    const watching = open();
    expect(await watching.locks.elect('chief').leader()).toBeNull();
    const a = candidate(locks.elect('chief', { owner: 'web-1', metadata: { url: 'http://web-1' } }));
    await settle();
    const [term] = a.terms;
    expect(await watching.locks.elect('chief').leader()).toEqual({
      owner: 'web-1',
      metadata: { url: 'http://web-1' },
      token: term?.token,
      since: term?.acquiredAt,
    });
    expect(watching.store.applied).toEqual([]);
  });

  it('is right for two candidates of one process and one owner: the token is that of the term', async () => {
    const { clock, open } = stage();
    const { locks } = open({ owner: 'a' });
    const election = locks.elect('chief');
    const all = [candidate(election), candidate(election)];
    for (let changes = 0; changes < 6; changes++) {
      await clock.advance(100);
      const [leading, none] = all.filter(({ terms }) => terms.at(-1)?.held);
      expect(none).toBeUndefined();
      expect(await election.leader()).toMatchObject({ token: leading?.terms.at(-1)?.token });
      leading?.finish();
    }
  });

  it('is right after a plain lock of the same process and owner was released', async () => {
    const { clock, open } = stage();
    const { locks } = open({ owner: 'a' });
    const lease = await locks.acquire('chief');
    const a = candidate(locks.elect('chief'));
    await clock.advance(10);
    await lease.release();
    await clock.advance(1_000);
    expect(await locks.elect('chief').leader()).toMatchObject({ token: a.terms[0]?.token });
  });

  it('is nobody while the key cools down', async () => {
    const { open } = stage();
    const { locks } = open();
    await locks.withLock('chief', () => undefined, { minHold: '1m' });
    expect(await locks.elect('chief').leader()).toBeNull();
  });
});

describe('an observer', () => {
  it('sees who leads and then every change once, in order, and nobody in between', async () => {
    const { clock, open } = stage();
    const stop = new AbortController();
    const observed = observer(open().locks.elect('chief'), stop.signal);
    await clock.advance(1_000);
    const a = candidate(open({ owner: 'a' }).locks.elect('chief'));
    await clock.advance(30_000);
    const b = candidate(open({ owner: 'b' }).locks.elect('chief'));
    await clock.advance(1_000);
    a.quit();
    await clock.advance(1_000);
    b.finish();
    await clock.advance(1_000);
    b.quit();
    await clock.advance(1_000);
    expect(owners(observed.seen)).toEqual([null, 'a', 'b', 'b', null]);
    const tokens = observed.seen.flatMap((leader) => leader?.token ?? []);
    expect(tokens).toEqual([...a.terms, ...b.terms].map(({ token }) => token));
    stop.abort();
    await settle();
    expect(observed.loop.state).toBe('done');
  });

  it('sees a term of its own process at once', async () => {
    const { clock, open } = stage();
    const { locks } = open({ owner: 'a' });
    const seen: (Leader | null)[] = [];
    const stop = new AbortController();
    void (async () => {
      const changes = locks.elect('chief').observe({ every: '1h', signal: stop.signal });
      for await (const leader of changes) seen.push(leader);
    })();
    await clock.advance(1_000);
    candidate(locks.elect('chief'));
    await clock.advance(1);
    expect(owners(seen)).toEqual([null, 'a']);
    stop.abort();
  });

  it('goes on after failed reads, and ends with its locks; a first read that fails is an error', async () => {
    const { clock, open } = stage();
    const { locks, store } = open();
    const { read } = store;
    const observed = observer(locks.elect('chief'), new AbortController().signal);
    await clock.advance(1_000);
    store.read = () => Promise.reject(new Error('connection reset'));
    candidate(open({ owner: 'a' }).locks.elect('chief'));
    await clock.advance(1_000);
    const failed = observer(locks.elect('chief'), new AbortController().signal);
    await settle();
    expect(failed.loop.error).toBeInstanceOf(StoreError);
    store.read = read;
    await clock.advance(1_000);
    expect(owners(observed.seen)).toEqual([null, 'a']);
    const closing = locks.close({ drain: 0 });
    await clock.advance(1_000);
    await closing;
    expect(observed.loop.state).toBe('done');
  });
});

describe('what an election is given', () => {
  it.each([
    ['an empty key', (locks: Locks) => locks.elect('')],
    ['a ttl that is none', (locks: Locks) => locks.elect('k', { ttl: '3 days' as '3h' })],
    ['an option that there is not', (locks: Locks) => locks.elect('k', { wait: 3 } as object)],
    ['metadata that is no object', (locks: Locks) => locks.elect('k', { metadata: [] as never })],
    ['a signal that is none', (locks: Locks) => locks.elect('k', { signal: {} as AbortSignal })],
    ['an interval that is too short', (locks: Locks) => locks.elect('k').observe({ every: 1 })],
    ['another option to observe', (locks: Locks) => locks.elect('k').observe({ ttl: 1 } as object)],
  ])('%s is refused at once', (_, call) => {
    const { open } = stage();
    const { locks, store } = open();
    expect(() => call(locks)).toThrow(InvalidArgumentError);
    expect(store.applied).toEqual([]);
  });
});
