import { describe, expect, it } from 'vitest';
import {
  type Claim,
  NotExecutedError,
  type Release,
  type Reply,
  type State,
  UnsupportedError,
} from '../../src/protocol/index.js';
import type { Register, Written } from '../../src/stores/compare-and-swap/index.js';
import { CompareAndSwap } from '../../src/stores/compare-and-swap/index.js';
import { Paper, paperRegister, paperStore } from './paper.js';

const TIME = {
  reading: () => ({ earliest: 1_000_000, latest: 1_000_000 }),
  isFresh: () => true,
  sample: async () => undefined,
};

function claimOf(process: string, number = 1, more: Partial<Claim> = {}): Claim {
  return {
    kind: 'claim',
    key: 'k',
    hold: { process, number },
    owner: process,
    permits: 1,
    capacity: 1,
    ttlMs: 10_000,
    queue: false,
    inbox: null,
    metadata: null,
    ...more,
  };
}

const releaseOf = (process: string, number = 1): Release => ({
  kind: 'release',
  key: 'k',
  hold: { process, number },
  minHoldMs: 0,
});

function swapOn(register: Register<number>): CompareAndSwap<number> {
  return new CompareAndSwap(register, TIME, { name: 'paper', queue: true });
}

const say = (swap: CompareAndSwap<number>, command: Claim | Release): Promise<Reply> =>
  swap.apply([command])[0] as Promise<Reply>;

describe('the calls of an operation', () => {
  it('claim, renewal and release are one each where nobody else was', async () => {
    for (const takes of [true, false]) {
      const paper = new Paper();
      const swap = swapOn(paperRegister(paper, { takes }));
      for (let number = 1; number <= 3; number++) {
        const hold = { process: 'a', number };
        await say(swap, claimOf('a', number));
        await swap.apply([{ kind: 'renew', key: 'k', hold, ttlMs: 20_000, block: false }])[0];
        await say(swap, releaseOf('a', number));
      }
      const round = [takes ? 'take k' : 'write k', 'write k', 'write k'];
      expect(paper.calls).toEqual([...round, ...round, ...round]);
    }
  });

  it('a busy try is one where the engine tells what is there, and one read where the key is known', async () => {
    const paper = new Paper();
    const [first, second] = [swapOn(paperRegister(paper)), swapOn(paperRegister(paper))];
    await say(first, claimOf('a'));
    paper.calls.length = 0;
    expect((await say(second, claimOf('b'))).kind).toBe('busy');
    expect(paper.calls).toEqual(['take k']);
    expect((await say(second, claimOf('b'))).kind).toBe('busy');
    expect(paper.calls).toEqual(['take k', 'read k']);
  });

  it('at most three where others were before: a guess, a look, a write', async () => {
    const paper = new Paper();
    const manners = { takes: false, tells: false };
    const [first, second] = [swapOn(paperRegister(paper, manners)), swapOn(paperRegister(paper, manners))];
    await say(first, claimOf('a'));
    await say(first, releaseOf('a'));
    paper.calls.length = 0;
    expect((await say(second, claimOf('b'))).kind).toBe('granted');
    expect(paper.calls).toEqual(['write k', 'read k', 'write k']);
  });

  it('a batch on one key is one write', async () => {
    const paper = new Paper();
    const swap = swapOn(paperRegister(paper));
    const replies = await Promise.all(
      swap.apply(Array.from({ length: 5 }, (_, index) => claimOf(`p${index}`, 1, { capacity: 5 }))),
    );
    expect(replies.map(({ kind }) => kind)).toEqual(Array.from({ length: 5 }, () => 'granted'));
    expect(paper.calls).toEqual(['write k']);
  });
});

describe('races', () => {
  it('F18: claims of one process go one after the other, and do not race each other', async () => {
    const paper = new Paper();
    const swap = swapOn(paperRegister(paper));
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, index) => say(swap, claimOf(`p${index}`))),
    );
    expect(replies.filter(({ kind }) => kind === 'granted')).toHaveLength(1);
    expect(paper.calls.filter((call) => !call.startsWith('read'))).toHaveLength(1);
  });

  it('a command that always meets somebody else is unknown in the end, and says why', async () => {
    const paper = new Paper();
    let revision = 0;
    const swap = swapOn({
      ...paperRegister(paper),
      take: async (): Promise<Written<number>> => ({ kind: 'changed', found: null }),
      write: async (): Promise<Written<number>> => ({ kind: 'changed', found: null }),
      read: async () => ({ state: null, version: ++revision, lateMs: 0 }),
    });
    await expect(say(swap, claimOf('a'))).rejects.toThrow(/24 times in a row/);
  });

  it('what was found before a pause is old: the record is read again, and the command gets through', async () => {
    let revision = 0;
    const found = () => ({ state: null, version: revision, lateMs: 0 });
    const swap = swapOn({
      absent: { state: null, version: -1, lateMs: 0 },
      read: async () => found(),
      async write(_key, state, seen): Promise<Written<number>> {
        if (seen.version === revision) return { kind: 'written', version: revision, lateMs: 0, state };
        const before = found();
        // Somebody writes right after each refusal.
        revision += 1;
        return { kind: 'changed', found: before };
      },
    });
    expect(await say(swap, claimOf('a'))).toMatchObject({ kind: 'granted' });
  });

  it('a claim that is sent again shares the busy answer to its first attempt: a slow store is asked once', async () => {
    const paper = new Paper();
    const plain = paperRegister(paper, { takes: false });
    await say(swapOn(plain), claimOf('holder'));
    paper.calls.length = 0;
    const swap = swapOn(plain);
    const attempts = [1, 2, 3].map(() => say(swap, claimOf('a', 1, { queue: true })));
    const replies = await Promise.all(attempts);
    expect(replies.map(({ kind }) => kind)).toEqual(['busy', 'busy', 'busy']);
    expect(paper.calls).toEqual(['write k', 'write k']);
  });

  it('F27: a claim that hangs does not go on once its hold was released', async () => {
    const paper = new Paper();
    const plain = paperRegister(paper);
    let answer: (written: Written<number>) => void = () => undefined;
    const swap = swapOn({
      ...plain,
      take: () =>
        new Promise((resolve) => {
          answer = resolve;
        }),
    });
    const hung = say(swap, claimOf('a'));
    const outcome = expect(hung).rejects.toThrow(/withdrawn/);
    expect(await say(swap, releaseOf('a'))).toMatchObject({ kind: 'released', held: false });
    answer({ kind: 'changed', found: await plain.read('k') });
    await outcome;
    expect((JSON.parse(paper.sheets.get('k')?.text ?? '') as State).holders).toEqual([]);
  });

  it('a claim waits for one that hangs no longer than an attempt may take', async () => {
    const paper = new Paper();
    const plain = paperRegister(paper);
    let calls = 0;
    const swap = swapOn({
      ...plain,
      take: (claim, next, now) =>
        (++calls === 1 ? new Promise(() => undefined) : plain.take?.(claim, next, now)) as Promise<
          Written<number>
        >,
    });
    void say(swap, claimOf('a'));
    expect((await say(swap, claimOf('a'))).kind).toBe('granted');
  });

  it('after a failure nothing is remembered: the next guess is a fresh one', async () => {
    const paper = new Paper();
    const plain = paperRegister(paper);
    let fail = false;
    const swap = swapOn({
      ...plain,
      async write(key, next, seen, now) {
        const written = await plain.write(key, next, seen, now);
        if (fail) throw new Error('the reply was lost');
        return written;
      },
    });
    await say(swap, claimOf('a'));
    fail = true;
    await expect(say(swap, releaseOf('a'))).rejects.toThrow('the reply was lost');
    fail = false;
    expect(await say(swap, releaseOf('a'))).toMatchObject({ kind: 'released', held: false });
    expect((await say(swap, claimOf('a', 2))).kind).toBe('granted');
  });
});

describe('F4: a write that the client may have sent twice came back refused, and the read after it fails', () => {
  async function errorAfter(failure: Error, repeats: boolean): Promise<unknown> {
    const paper = new Paper();
    const plain = paperRegister(paper, { takes: false, tells: false });
    const swap = swapOn({
      ...plain,
      repeats,
      async write(key, next, seen, now) {
        await plain.write(key, next, seen, now);
        return { kind: 'changed', found: null };
      },
      read: () => Promise.reject(failure),
    });
    const error: unknown = await say(swap, claimOf('a')).catch((thrown: unknown) => thrown);
    expect(paper.sheets.has('k'), 'the first one was executed').toBe(true);
    return error;
  }

  const unsent = new NotExecutedError('nothing listens', 'while-waiting');
  const refused = new UnsupportedError('Not allowed. Nothing was changed.', { cause: new Error('denied') });

  it.each([unsent, refused])('$name: the outcome is unknown', async (failure) => {
    const error = await errorAfter(failure, true);
    expect(error).toBeInstanceOf(Error);
    expect(error).not.toBeInstanceOf(NotExecutedError);
    expect(error).not.toBeInstanceOf(UnsupportedError);
    expect(error).toMatchObject({ cause: failure, message: expect.stringMatching(/is not known/) });
  });

  it('a client that sends each write once is believed, and so is a record that was read and is no lock', async () => {
    expect(await errorAfter(unsent, false)).toBe(unsent);
    const other = new UnsupportedError('This is not a lock.', { key: 'k' });
    expect(await errorAfter(other, true)).toBe(other);
  });
});

describe('time', () => {
  it('a take-over asks for the time first, unless it was told a moment ago', async () => {
    for (const fresh of [true, false]) {
      const paper = new Paper();
      const [first, second] = [paperStore(paper, { fresh }), paperStore(paper, { fresh })];
      await first.apply([claimOf('a', 1, { ttlMs: 1 })])[0];
      await new Promise((resolve) => setTimeout(resolve, 20));
      expect((await second.apply([claimOf('b')])[0])?.kind).toBe('granted');
      expect(paper.samples).toBe(fresh ? 0 : 1);
    }
  });

  it('a process that does not know the time asks once, however much it has to say', async () => {
    let samples = 0;
    let known = false;
    const time = {
      reading: () => (known ? TIME.reading() : null),
      isFresh: () => true,
      async sample() {
        samples += 1;
        await new Promise((resolve) => setTimeout(resolve, 5));
        known = true;
      },
    };
    const swap = new CompareAndSwap(paperRegister(new Paper()), time, { name: 'paper', queue: true });
    const claims = Array.from({ length: 20 }, (_, index) => ({ ...claimOf('a'), key: `k${index}` }));
    await Promise.all(swap.apply(claims));
    expect(samples).toBe(1);
  });

  it('two readings that err in opposite directions, each within its error, never overlap', async () => {
    for (const [writerOff, takerOff] of [
      [-40, 40],
      [40, -40],
    ] as const) {
      const paper = new Paper();
      const writer = paperStore(paper, { offMs: writerOff, errorMs: 40 });
      const taker = paperStore(paper, { offMs: takerOff, errorMs: 40 });
      const since = performance.now();
      await writer.apply([claimOf('a', 1, { ttlMs: 120 })])[0];
      let kind = '';
      while (kind !== 'granted' && performance.now() - since < 5_000) {
        kind = (await taker.apply([claimOf('b')])[0])?.kind ?? '';
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
      expect(kind).toBe('granted');
      expect(performance.now() - since, 'taken while its holder may count on it').toBeGreaterThanOrEqual(119);
    }
  });

  it('what was stored late ends late: by the stamp of the engine plus the ttl', async () => {
    const paper = new Paper();
    const since = performance.now();
    await paperStore(paper, { lateMs: 200, takes: false }).apply([claimOf('a', 1, { ttlMs: 20 })])[0];
    const taker = paperStore(paper, { takes: false });
    let kind = '';
    while (kind !== 'granted' && performance.now() - since < 5_000) {
      kind = (await taker.apply([claimOf('b')])[0])?.kind ?? '';
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    expect(performance.now() - since).toBeGreaterThanOrEqual(219);
  });
});

it('F11: a grant during which the store told another time is unknown, and not a whole ttl', async () => {
  const paper = new Paper();
  const plain = paperRegister(paper);
  const time = { ...TIME, jumps: 0 };
  const jumping: Register<number> = {
    ...plain,
    take: async (claim, next, now) => {
      const written = await (plain.take?.(claim, next, now) ??
        plain.write(claim.key, next, plain.absent, now));
      time.jumps += 1;
      return written;
    },
  };
  const swap = new CompareAndSwap(jumping, time, { name: 'paper', queue: true });
  await expect(say(swap, claimOf('a'))).rejects.toThrow(/A clock stood still/);
});

it('a closed store refuses, and says so', async () => {
  const store = paperStore(new Paper());
  await store.close();
  await expect(store.apply([claimOf('a')])[0]).rejects.toThrow('This paper store is closed.');
  await expect(store.read('k')).rejects.toThrow('closed');
});
