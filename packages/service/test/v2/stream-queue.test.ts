import { expect, it } from 'vitest';
import { type ChangeKind, SerialisedLock, StreamQueue } from '../../src/v2/stream-queue.js';
import { emptyView, lockView } from '../../src/v2/views.js';

const NOBODY = { inStore: [], behind: [] };
const lock = (key: string, now = 1) => new SerialisedLock(lockView(emptyView(key, now), NOBODY, 'text'));

function slowStream() {
  const sent: unknown[] = [];
  let drained = (): void => undefined;
  const stream = {
    isBehind: true,
    send: (event: string) => sent.push(event),
    sendAll: (events: readonly (readonly [string, Buffer])[]) => {
      for (const [event, data] of events) {
        const { key, now } = JSON.parse(String(data)) as { key: string; now: number };
        sent.push([event, key, now]);
      }
    },
    onDrain: (run: () => void) => {
      drained = run;
    },
  };
  const read = (): void => {
    stream.isBehind = false;
    drained();
  };
  return { stream, sent, read };
}

/** What one is told in the end who was not reading while all this happened. */
function toldOf(kinds: readonly ChangeKind[]): unknown[] {
  const { stream, sent, read } = slowStream();
  const queue = new StreamQueue(stream, () => true);
  for (const [at, kind] of kinds.entries()) queue.change(kind, lock('a/b', at));
  expect(sent).toEqual([]);
  queue.ready();
  read();
  return sent;
}

it.each<[readonly ChangeKind[], unknown[]]>([
  [['appeared'], [['appeared', 'a/b', 0], 'ready']],
  [
    ['appeared', 'changed', 'renewed'],
    [['appeared', 'a/b', 2], 'ready'],
  ],
  [['appeared', 'gone'], ['ready']],
  [
    ['appeared', 'gone', 'appeared'],
    [['appeared', 'a/b', 2], 'ready'],
  ],
  [
    ['changed', 'renewed'],
    [['changed', 'a/b', 1], 'ready'],
  ],
  [
    ['renewed', 'changed'],
    [['changed', 'a/b', 1], 'ready'],
  ],
  [
    ['renewed', 'gone'],
    [['gone', 'a/b', 1], 'ready'],
  ],
  [
    ['gone', 'appeared'],
    [['changed', 'a/b', 1], 'ready'],
  ],
  [
    ['gone', 'appeared', 'gone'],
    [['gone', 'a/b', 2], 'ready'],
  ],
])('%j comes to %j for one who was behind', (kinds, told) => {
  expect(toldOf(kinds)).toEqual(told);
});

it('a right that is gone by the time of sending counts no more', () => {
  const { stream, sent, read } = slowStream();
  let mayRead = true;
  const queue = new StreamQueue(stream, () => mayRead);
  queue.change('appeared', lock('a/b'));
  mayRead = false;
  read();
  expect(sent).toEqual([]);
});

it('trouble is told at once and once, and takes the ready back that was not said yet', () => {
  const { stream, sent, read } = slowStream();
  const queue = new StreamQueue(stream, () => true);
  queue.change('appeared', lock('a/b'));
  queue.ready();
  queue.trouble();
  queue.trouble();
  expect(sent).toEqual(['trouble']);
  read();
  expect(sent).toEqual(['trouble', ['appeared', 'a/b', 1]]);
  queue.ready();
  expect(sent.at(-1)).toBe('ready');
});

it('metadata that is kept as text is told as what it is', () => {
  const sent: unknown[] = [];
  const stream = {
    isBehind: false,
    send: () => undefined,
    sendAll: (events: readonly (readonly [string, Buffer])[]) =>
      sent.push(...events.map(([, data]) => JSON.parse(String(data)))),
    onDrain: () => undefined,
  };
  const holder = {
    owner: 'o',
    permits: 1,
    capacity: 1,
    token: 1,
    acquiredAt: 1,
    expiresAt: 2,
    resting: false,
  };
  const holders = ['{"a":1}', 'no JSON', null].map((metadata) => ({ ...holder, metadata }));
  new StreamQueue(stream, () => true).change(
    'appeared',
    new SerialisedLock(lockView({ ...emptyView('a/b', 1), holders }, NOBODY, 'text')),
  );
  expect(sent).toMatchObject([
    { holders: [{ metadata: { a: 1 } }, { metadata: 'no JSON' }, { metadata: null }] },
  ]);
});
