/** Looking at keys, and at what the service's store promises. */
import type { Finding, Guarantees, ListQuery, Snapshot, Store } from '../../protocol/index.js';
import type { Line } from './line.js';

/** The most that a service gives in one answer. */
const PAGE = 1_000;

interface Page {
  readonly locks: readonly Snapshot[];
  readonly next: string | null;
}

export function looks(line: Line): Pick<Store, 'read' | 'list'> {
  async function page(query: Readonly<Record<string, string>>): Promise<Page> {
    const found = await line.ask(`/v2/locks?${new URLSearchParams({ ...query, metadata: 'text' })}`);
    return pageIn(found);
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
        const most = String(Math.min(left, PAGE));
        const query = { prefix, limit: most, ...(last !== undefined && { after: last }) };
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
  if (!Array.isArray(locks)) throw new Error('The service answered something that is no list of locks.');
  return { locks: locks.map(snapshotIn), next: typeof next === 'string' ? next : null };
}

function snapshotIn(lock: unknown): Snapshot {
  const { key, now, token, holders, waiters } = objectIn(lock);
  if (typeof key === 'string' && Array.isArray(holders) && Array.isArray(waiters)) {
    return { key, now: Number(now), token: Number(token), holders, waiters };
  }
  throw new Error('The service answered something that is no lock.');
}

export interface Circumstances {
  /** Why wake-ups are not heard now, if they are not. */
  readonly deafness: unknown;
  /** Whether a key or token goes over the network as it is. */
  readonly exposed: boolean;
}

export async function probe(line: Line, { deafness, exposed }: Circumstances): Promise<Guarantees> {
  const { server, now, findings, traits } = objectIn(await line.ask('/v2/probe'));
  if (typeof server !== 'string' || typeof now !== 'number' || !Array.isArray(findings)) {
    throw new Error('The service answered something that says nothing of its store.');
  }
  const own: Finding[] = [
    {
      level: 'good',
      text: `Commands go through the lock service at ${line.servers.current}, and its store decides.`,
    },
  ];
  if (line.servers.count > 1 && objectIn(traits).shared === 'process') {
    own.push({
      level: 'warning',
      text: 'Each of the services has locks of its own, in its memory: urls are for services on one store.',
    });
  }
  if (exposed) {
    own.push({
      level: 'warning',
      text: 'The key or token is sent over plain HTTP, for anybody in between to read: use https.',
    });
  }
  if (deafness) {
    const why = deafness instanceof Error ? deafness.message : String(deafness);
    own.push({ level: 'note', text: `No wake-ups are heard now, so waiters ask more often: ${why}` });
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
