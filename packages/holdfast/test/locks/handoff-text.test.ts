import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { createLocks, HoldfastError, InvalidArgumentError, UnsupportedError } from '../../src/index.js';
import { memoryStore } from '../../src/stores/memory.js';

async function handedOff(): Promise<{ text: string; fields: unknown[] }> {
  const locks = createLocks(memoryStore(), { owner: 'tester' });
  const lease = await locks.acquire('job/é', { metadata: { note: 'ü "quoted"' }, ttl: '1m' });
  const text = await lease.handoff();
  return { text, fields: JSON.parse(Buffer.from(text, 'base64url').toString()) as unknown[] };
}

const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** With a sum that is right: so that what is in it is looked at. */
function textOf(fields: unknown): string {
  if (!Array.isArray(fields)) return encoded(fields);
  const summed = fields.slice(0, -1);
  const sum = createHash('sha256').update(JSON.stringify(summed)).digest('base64url').slice(0, 8);
  return encoded([...summed, sum]);
}

test('the string is safe on a command line, in an environment and in a URL', async () => {
  const { text } = await handedOff();
  expect(text).toMatch(/^[A-Za-z][A-Za-z0-9_-]*$/);
});

test('F17: keys and metadata of any kind come through unchanged', async () => {
  const store = memoryStore();
  const locks = createLocks(store);
  for (const [key, metadata] of [
    ['a/b/c', { deep: [1, { x: null }] }],
    ['Grüße "quoted" \\ 日本語 🎉', { '': 'ß' }],
    ['-', {}],
    ['x'.repeat(512), undefined],
  ] as const) {
    const lease = await locks.acquire(key, metadata ? { metadata } : {});
    const adopted = await createLocks(store).adopt(await lease.handoff());
    expect([adopted.key, adopted.metadata]).toEqual([key, metadata]);
  }
});

const NOT_HANDOFFS: readonly unknown[] = [
  undefined,
  null,
  7,
  {},
  [],
  '',
  ' ',
  'secret',
  'W10',
  'bnVsbA',
  'AAAA',
];

test.each(NOT_HANDOFFS)('%j is no handoff: refused before anything is sent', async (given) => {
  const locks = createLocks({ ...memoryStore(), apply: () => expect.unreachable() });
  await expect(locks.adopt(given as string)).rejects.toThrow(InvalidArgumentError);
});

test('whatever is changed in it is refused, and no error repeats any of it', async () => {
  const { text, fields } = await handedOff();
  // No metadata, or another time, could have been meant.
  const possible = new Set([text, textOf(fields.with(12, null)), textOf(fields.with(10, 0.5))]);
  const damaged = [
    text.slice(0, -1),
    text.slice(1),
    text.slice(0, text.length / 2),
    `${text}=`,
    ` ${text}`,
    text + text,
    ...fields.flatMap((_, at) => [null, {}, '', -1, 0.5].map((wrong) => textOf(fields.with(at, wrong)))),
    textOf(fields.with(1, 'no namespace')),
    textOf(fields.with(1, 'default/\u0007secret')),
    textOf(fields.with(6, 'x'.repeat(300))),
    textOf(fields.with(7, 2)),
    textOf(fields.with(9, 1e12)),
    textOf(fields.with(12, '{"secret":')),
    textOf(fields.with(12, '"text"')),
    textOf({ ...fields }),
    ...[...text].flatMap((letter, at) =>
      ['A', 'x', '7', '_'].flatMap((other) =>
        other === letter ? [] : [text.slice(0, at) + other + text.slice(at + 1)],
      ),
    ),
  ].filter((changed) => !possible.has(changed));
  const locks = createLocks({ ...memoryStore(), apply: () => expect.unreachable() });
  const process = String(fields[2]);
  for (const changed of damaged) {
    const error: unknown = await locks.adopt(changed).then(
      () => null,
      (reason: unknown) => reason,
    );
    expect(error, Buffer.from(changed, 'base64url').toString()).toBeInstanceOf(InvalidArgumentError);
    const { message, cause, stack } = error as InvalidArgumentError;
    for (const part of [process, changed, 'secret', 'quoted', 'tester']) {
      if (part !== '') expect(`${message} ${String(cause)} ${stack}`).not.toContain(part);
    }
  }
});

test('one of a newer format is refused with what to do', async () => {
  const { fields } = await handedOff();
  const adopting = createLocks(memoryStore()).adopt(textOf(fields.with(0, 2)));
  await expect(adopting).rejects.toThrow(UnsupportedError);
  await expect(adopting).rejects.toThrow(/upgrade/);
});

test('one of another namespace is refused, and names both', async () => {
  const store = memoryStore();
  const text = await (await createLocks(store, { namespace: 'billing' }).acquire('k')).handoff();
  await expect(createLocks(store).adopt(text)).rejects.toThrow(/"billing".*"default"/);
});

test('options that are wrong are named, as everywhere', async () => {
  const { text } = await handedOff();
  const locks = createLocks(memoryStore());
  await expect(locks.adopt(text, { ttl: 1 })).rejects.toThrow(/ttl/);
  await expect(locks.adopt(text, { owner: 'x' } as object)).rejects.toThrow(/owner/);
});

test('no list, no view and no error of the locks shows the string or its hold', async () => {
  const store = memoryStore();
  const locks = createLocks(store);
  const text = await (await locks.acquire('k')).handoff();
  const process = String((JSON.parse(Buffer.from(text, 'base64url').toString()) as unknown[])[2]);
  const seen: unknown[] = [await locks.inspect('k')];
  for await (const info of locks.list()) seen.push(info);
  const evicted = await locks.evict('k');
  const error: unknown = await locks.adopt(text).then(
    () => null,
    (reason: unknown) => reason,
  );
  expect([evicted, error instanceof HoldfastError]).toEqual([1, true]);
  seen.push(error instanceof HoldfastError ? [error.message, error.stack, error.cause] : null);
  for (const part of [text, process]) expect(JSON.stringify(seen)).not.toContain(part);
});
