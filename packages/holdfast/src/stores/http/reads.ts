/** Reads of keys, and of the guarantees of the service's store. */
import type { Finding, Guarantees, ListQuery, Snapshot, Store } from '../../protocol/index.js';
import { messageOf } from '../clients/errors.js';
import { findingsOf, good, note, warning } from '../clients/findings.js';
import type { Connection } from './connection.js';

/** The most that a service lists in one response. */
const PAGE_MAX = 1_000;

interface Page {
  readonly locks: readonly Snapshot[];
  readonly next: string | null;
}

export function reads(connection: Connection): Pick<Store, 'read' | 'list'> {
  async function page(query: Readonly<Record<string, string>>): Promise<Page> {
    const search = new URLSearchParams({ ...query, metadata: 'text' });
    const { locks, next = null } = objectIn(await connection.request(`/v2/locks?${search}`));
    if (!Array.isArray(locks)) throw new Error('The response of the service is not a list of locks.');
    return { locks: locks.map(snapshotIn), next: typeof next === 'string' ? next : null };
  }
  return {
    async read(key) {
      const { locks } = await page({ key });
      return locks[0] ?? null;
    },
    async *list({ prefix, after, limit = Number.POSITIVE_INFINITY }: ListQuery): AsyncIterable<Snapshot> {
      let left = limit;
      let last = after;
      while (left > 0) {
        const size = String(Math.min(left, PAGE_MAX));
        const query = { ...scopeOf(prefix), limit: size, ...(last !== undefined && { after: last }) };
        const { locks, next }: Page = await page(query);
        for (const lock of locks) {
          if (left <= 0) return;
          left -= 1;
          yield lock;
        }
        if (next === null) return;
        last = next;
      }
    },
  };
}

/** Names the namespace, where the prefix has a whole one: without a right on it, the list is then refused, and not empty. */
function scopeOf(prefix: string): Readonly<Record<string, string>> {
  const [, namespace, start] = /^([\w.-]{1,64})\/(.*)$/s.exec(prefix) ?? [];
  return namespace === undefined || start === undefined ? { prefix } : { namespace, prefix: start };
}

function snapshotIn(lock: unknown): Snapshot {
  const { key, now, token, holders, waiters } = objectIn(lock);
  if (typeof key === 'string' && Array.isArray(holders) && Array.isArray(waiters)) {
    return { key, now: Number(now), token: Number(token), holders, waiters };
  }
  throw new Error('The response of the service contains an entry that is not a lock.');
}

/** `listenError`: why no wake-ups arrive now. `isExposed`: an API key or a JWT travels unencrypted. */
export async function probe(
  connection: Connection,
  listenError: unknown,
  isExposed: boolean,
): Promise<Guarantees> {
  const { server, now, findings, traits } = objectIn(await connection.request('/v2/probe'));
  if (typeof server !== 'string' || typeof now !== 'number' || !Array.isArray(findings)) {
    throw new Error('The response of the service says nothing about its store.');
  }
  const own = findingsOf(
    good(`Commands go through the lock service at ${connection.url}, and its store decides.`),
    connection.serviceCount > 1 &&
      objectIn(traits).shared === 'process' &&
      warning(
        'Each of these services keeps locks of its own in its memory: urls are for services on one store.',
      ),
    isExposed && warning('The API key or JWT is sent over plain HTTP, where others can read it: use https.'),
    listenError !== null &&
      note(`No wake-ups arrive now, so waiters ask more often: ${messageOf(listenError)}`),
  );
  return {
    server: `${server}, through a Holdfast service`,
    now,
    findings: [...own, ...(findings as Finding[])],
  };
}

function objectIn(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}
