/** Inspecting, listing, watching and evicting keys. Nothing here shows a hold id. */
import type { EvictOptions, KeyChange, KeyInfo, ListOptions, WatchOptions } from './api.js';
import { checkSignal } from './arguments.js';
import { endable } from './lease/endable.js';
import { Pause } from './lease/pause.js';
import type { Context } from './primitives/single.js';
import { durationMs } from './protocol/durations.js';
import { InvalidArgumentError, UnsupportedError } from './protocol/errors.js';
import { ignore } from './protocol/ignore.js';
import { listAround } from './protocol/keys.js';
import { checkAfter, checkKey, checkPrefix, checkReason, show } from './protocol/names.js';
import { checkOptionNames } from './protocol/option-names.js';
import type { Snapshot } from './protocol/store.js';
import { holderInfo } from './protocol/view.js';

const WATCH_MS = 500;

export async function inspect(context: Context, key: string): Promise<KeyInfo | null> {
  const name = checkKey(key);
  const snapshot = await read(context, name, 'inspect');
  return snapshot && keyInfo(context, snapshot);
}

export async function* list(context: Context, options: ListOptions = {}): AsyncGenerator<KeyInfo> {
  const { prefix, limit, after } = checkOptionNames(options, ['prefix', 'limit', 'after']);
  const from = context.defaults.prefix + checkPrefix(prefix);
  if (limit !== undefined && !(Number.isInteger(limit) && limit > 0)) {
    throw new InvalidArgumentError(`limit is ${show(limit)}, but has to be a whole number above 0.`);
  }
  const query = {
    prefix: from,
    ...(limit !== undefined && { limit }),
    ...(after !== undefined && { after: context.defaults.prefix + checkAfter(after) }),
  };
  const snapshots = context.leases.client.store.list(query)[Symbol.asyncIterator]();
  try {
    for (;;) {
      context.leases.checkOpen();
      const next = await context.leases.client.within(snapshots.next(), 'list');
      if (next.done) return;
      yield keyInfo(context, next.value);
    }
  } catch (error) {
    if (!(error instanceof UnsupportedError) || error.key === undefined) throw error;
    // The unreadable record by the key that its user knows, for listing on behind it.
    const key = error.key.slice(context.defaults.prefix.length);
    throw new UnsupportedError(error.message, { key, cause: error.cause ?? error });
  } finally {
    // Not awaited: a store that hangs would never answer.
    void Promise.allSettled([snapshots.return?.()]);
  }
}

/**
 * Lists the keys repeatedly, and yields the differences. Changes that come and go between two lists are not seen, and
 * neither are unreadable records.
 */
export function watch(context: Context, options: WatchOptions = {}): AsyncGenerator<KeyChange> {
  return endable(
    context.leases,
    () => checkedToWatch(options),
    (ending, { prefix, everyMs }) =>
      changes(context, prefix === undefined ? {} : { prefix }, everyMs, ending),
  );
}

function checkedToWatch(options: WatchOptions): WatchOptions & { readonly everyMs: number } {
  const { every = WATCH_MS, signal } = checkOptionNames(options, ['prefix', 'every', 'signal']);
  checkSignal(signal);
  return { ...options, everyMs: durationMs(every, 'every', 10, 3_600_000) };
}

async function* changes(
  context: Context,
  listed: ListOptions,
  everyMs: number,
  ending: AbortSignal,
): AsyncGenerator<KeyChange> {
  const { leases } = context;
  leases.checkOpen();
  let known = new Map<string, KeyInfo>();
  while (!ending.aborted && !leases.isClosed) {
    const seen = new Map<string, KeyInfo>();
    try {
      // A plain list would end at an unreadable record and hide the keys after it.
      for await (const info of listAround((from) => list(context, from), listed, ignore)) {
        if (ending.aborted) return;
        seen.set(info.key, info);
      }
    } catch (error) {
      // Closing the locks ends the iteration without an error.
      if (leases.isClosed) return;
      throw error;
    }
    for (const [key, info] of seen) {
      const before = known.get(key);
      if (!before) yield { kind: 'appeared', info };
      else if (outline(before) !== outline(info)) yield { kind: 'changed', info };
    }
    for (const [key, info] of known) if (!seen.has(key)) yield { kind: 'gone', info };
    known = seen;
    // The caller closed the locks inside its loop: nothing would end the pause early.
    if (leases.isClosed) return;
    await new Pause(leases, everyMs, ending).over;
  }
}

export async function evict(context: Context, key: string, options: EvictOptions = {}): Promise<number> {
  const name = checkKey(key);
  const { token, upToToken, reason } = checkOptionNames(options, ['token', 'upToToken', 'reason']);
  if (token !== undefined && upToToken !== undefined) {
    throw new InvalidArgumentError(
      'Give token, for one holder, or upToToken, for all up to it, but not both.',
    );
  }
  const fromToken = token === undefined ? 0 : checkToken(token, 'token');
  const given = reason === undefined ? null : checkReason(reason);
  const last = token ?? (upToToken === undefined ? undefined : checkToken(upToToken, 'upToToken'));
  const command = {
    kind: 'evict',
    key: context.defaults.prefix + name,
    fromToken,
    upToToken: last ?? (await read(context, name, 'evict'))?.token ?? 0,
    reason: given,
  } as const;
  context.leases.checkOpen();
  const { reply } = await context.leases.client.ask(command, name);
  return reply.kind === 'evicted' ? reply.count : 0;
}

function checkToken(token: unknown, option: string): number {
  if (typeof token === 'number' && Number.isSafeInteger(token) && token >= 0) return token;
  throw new InvalidArgumentError(
    `${option} is ${show(token)}, but has to be a token as \`inspect\` shows it.`,
  );
}

async function read(context: Context, name: string, operation: string): Promise<Snapshot | null> {
  context.leases.checkOpen();
  const { client } = context.leases;
  return client.within(client.store.read(context.defaults.prefix + name), operation, name);
}

function keyInfo({ defaults }: Context, { key, now, holders, waiters }: Snapshot): KeyInfo {
  return {
    key: key.slice(defaults.prefix.length),
    now: new Date(now),
    holders: holders.map(holderInfo),
    waiters: waiters.map(({ owner, permits, capacity, since }) => ({
      owner,
      permits,
      capacity,
      since: new Date(since),
    })),
  };
}

/** The part of a view that counts as a change: holders and waiters, but no renewals. */
function outline({ holders, waiters }: KeyInfo): string {
  return JSON.stringify([
    holders.map(({ owner, token, resting }) => [owner, token, resting]),
    waiters.map(({ owner, since }) => [owner, since]),
  ]);
}
