/** Reads of keys, and of the guarantees of the service's store. */
import type { Finding, Guarantees, ListQuery, Snapshot, Store } from '../../protocol/index.js';
import type { Connection } from './connection.js';

/** The most that a service lists in one response. */
const PAGE_MAX = 1_000;

interface Page {
  readonly locks: readonly Snapshot[];
  readonly next: string | null;
}

export function reads(connection: Connection): Pick<Store, 'read' | 'list'> {
  async function page(query: Readonly<Record<string, string>>): Promise<Page> {
    return pageIn(
      await connection.request(`/v2/locks?${new URLSearchParams({ ...query, metadata: 'text' })}`),
    );
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
        const query = { prefix, limit: size, ...(last !== undefined && { after: last }) };
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

function pageIn(body: unknown): Page {
  const { locks, next = null } = objectIn(body);
  if (!Array.isArray(locks)) throw new Error('The response of the service is not a list of locks.');
  return { locks: locks.map(snapshotIn), next: typeof next === 'string' ? next : null };
}

function snapshotIn(lock: unknown): Snapshot {
  const { key, now, token, holders, waiters } = objectIn(lock);
  if (typeof key === 'string' && Array.isArray(holders) && Array.isArray(waiters)) {
    return { key, now: Number(now), token: Number(token), holders, waiters };
  }
  throw new Error('The response of the service contains an entry that is not a lock.');
}

export interface ConnectionState {
  /** Why no wake-ups arrive now; null while they do. */
  readonly listenError: unknown;
  /** Whether an API key or a JWT travels unencrypted. */
  readonly isExposed: boolean;
}

export async function probe(
  connection: Connection,
  { listenError, isExposed }: ConnectionState,
): Promise<Guarantees> {
  const { server, now, findings, traits } = objectIn(await connection.request('/v2/probe'));
  if (typeof server !== 'string' || typeof now !== 'number' || !Array.isArray(findings)) {
    throw new Error('The response of the service says nothing about its store.');
  }
  const own: Finding[] = [
    {
      level: 'good',
      text: `Commands go through the lock service at ${connection.url}, and its store decides.`,
    },
  ];
  if (connection.serviceCount > 1 && objectIn(traits).shared === 'process') {
    own.push({
      level: 'warning',
      text: 'Each of these services keeps locks of its own in its memory: urls are for services on one store.',
    });
  }
  if (isExposed) {
    own.push({
      level: 'warning',
      text: 'The API key or JWT is sent over plain HTTP, where others can read it: use https.',
    });
  }
  if (listenError) {
    const why = listenError instanceof Error ? listenError.message : String(listenError);
    own.push({ level: 'note', text: `No wake-ups arrive now, so waiters ask more often: ${why}` });
  }
  return {
    server: `${server}, through a Holdfast service`,
    now,
    findings: [...own, ...(findings as Finding[])],
  };
}

function objectIn(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}
