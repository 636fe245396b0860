/** Updates that share a statement, on statements of paper. */
import { describe, expect, it } from 'vitest';
import { NotExecutedError } from '../../src/protocol/index.js';
import { type Update, UpdateGroups, type UpdateStatements } from '../../src/stores/mysql/update-groups.js';

const updateOf = (key: string): Update => ({
  key,
  row: { version: `${key}.2`, state: '{}', deleteAfter: 1 },
  seen: `${key}.1`,
});

/** Everything is written, and noted. */
function paper({ lost = [], ...more }: Partial<UpdateStatements> & { lost?: readonly string[] } = {}) {
  const sent: string[][] = [];
  const keysOf = (updates: readonly Update[]): string[] => updates.map(({ key }) => key);
  const statements: UpdateStatements = {
    canGroup: () => true,
    async one(update) {
      sent.push(keysOf([update]));
      return lost.includes(update.key) ? { value: false, atMs: null } : { value: true, atMs: 1 };
    },
    async several(updates) {
      sent.push(keysOf(updates));
      return more.several ? more.several(updates) : { value: updates.length, atMs: 1 };
    },
    versions: async () => new Map(),
    ...(more.versions && { versions: more.versions }),
    ...(more.canGroup && { canGroup: more.canGroup }),
  };
  const groups = new UpdateGroups(statements);
  const update = (...keys: string[]) => Promise.allSettled(keys.map((key) => groups.update(updateOf(key))));
  return { sent, update };
}

const outcomes = (settled: readonly PromiseSettledResult<{ readonly value: boolean }>[]) =>
  settled.map((one) => (one.status === 'fulfilled' ? one.value.value : 'unknown'));

describe('updates of several keys', () => {
  it('of one moment share a statement; one that comes alone is sent alone', async () => {
    const { sent, update } = paper();
    expect(outcomes(await update('a', 'b', 'c'))).toEqual([true, true, true]);
    expect(outcomes(await update('d'))).toEqual([true]);
    expect(sent).toEqual([['a', 'b', 'c'], ['d']]);
  });

  it('a key twice at one moment: never in the same statement', async () => {
    const { sent, update } = paper();
    await update('a', 'b', 'a');
    expect(sent).toEqual([['a'], ['a', 'b']]);
  });

  it('a server that does not bound the wait for a locked row gets one statement per key', async () => {
    const { sent, update } = paper({ canGroup: () => false });
    await update('a', 'b');
    expect(sent).toEqual([['a'], ['b']]);
  });

  it('one has another version: each is sent alone, and later those that lost the race', async () => {
    const { sent, update } = paper({ several: async () => null, lost: ['b'] });
    expect(outcomes(await update('a', 'b', 'c'))).toEqual([true, false, true]);
    await update('a', 'b', 'c');
    expect(sent.slice(1)).toEqual([['a'], ['b'], ['c'], ['b'], ['a', 'c'], ['a'], ['c']]);
  });

  it('none is there any more: each is told so', async () => {
    const { update } = paper({ several: async () => ({ value: 0, atMs: null }) });
    expect(outcomes(await update('a', 'b'))).toEqual([false, false]);
  });

  it('some are gone: the versions tell which', async () => {
    const { update } = paper({
      several: async () => ({ value: 1, atMs: 1 }),
      versions: async () =>
        new Map([
          ['a', 'other'],
          ['b', 'b.2'],
        ]),
    });
    expect(outcomes(await update('a', 'b', 'c'))).toEqual([false, true, false]);
  });

  it('F4: a row that was written, and replaced before its version was read, is unknown and not "unchanged"', async () => {
    const { update } = paper({
      several: async () => ({ value: 2, atMs: 1 }),
      versions: async () =>
        new Map([
          ['a', 'other'],
          ['b', 'b.2'],
        ]),
    });
    expect(outcomes(await update('a', 'b', 'c'))).toEqual(['unknown', true, 'unknown']);
  });

  it('F4: when the versions cannot be read, nobody is told that nothing was executed', async () => {
    const { update } = paper({
      several: async () => ({ value: 1, atMs: 1 }),
      versions: async () => {
        throw new NotExecutedError('no connection', 'while-waiting');
      },
    });
    for (const one of await update('a', 'b')) {
      expect(one.status).toBe('rejected');
      expect((one as PromiseRejectedResult).reason).not.toBeInstanceOf(NotExecutedError);
    }
  });

  it('a deadlock or a locked row: each is sent alone, and so are its next ones', async () => {
    const { sent, update } = paper({
      several: async () => {
        throw new NotExecutedError('locked', 'at-once');
      },
    });
    expect(outcomes(await update('a', 'b'))).toEqual([true, true]);
    await update('a', 'b');
    expect(sent).toEqual([['a', 'b'], ['a'], ['b'], ['a'], ['b']]);
  });

  it('statements that hang keep no others waiting', async () => {
    const { sent, update } = paper({
      several: (updates) =>
        updates.some(({ key }) => key.startsWith('slow'))
          ? new Promise(() => undefined)
          : Promise.resolve({ value: updates.length, atMs: 1 }),
    });
    void update('slow:1', 'slow:2');
    await Promise.resolve();
    void update('slow:3', 'slow:4');
    await Promise.resolve();
    expect(outcomes(await update('a', 'b'))).toEqual([true, true]);
    expect(sent).toHaveLength(3);
  });
});
