/** GET /v2/history: ended holds. GET /v2/history/summary: counts and histograms. Both from the memory of this service. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { checkNamespace } from 'holdfast/protocol';
import type { History } from '../history/history.js';
import type { EndKind, PastHold } from '../history/past-holds.js';
import { HOLD_BUCKETS_MS, type Tally, WAIT_BUCKETS_MS } from '../history/tallies.js';
import type { ServiceParts } from '../http/service-parts.js';
import { ref } from '../openapi/schema.js';
import { historyQuerySchema, summaryQuerySchema } from './history-schemas.js';
import { checkStoredKey, namespaceOfKey, pageLengthOf, refuseForeign } from './names.js';
import { described } from './schemas.js';

interface HistoryQuery {
  readonly namespace?: string;
  readonly key?: string;
  readonly ended?: EndKind;
  readonly limit?: string;
  readonly before?: string;
}

const KEYS_SHOWN = 20;

export function historyRoutes(app: FastifyInstance, { history }: ServiceParts): void {
  app.route<{ Querystring: HistoryQuery }>({
    method: 'GET',
    url: '/v2/history',
    config: { needs: 'read', scope: () => null },
    schema: described({
      operationId: 'history',
      summary: 'List holds that have ended, as far as this service saw them',
      description: 'Kept in the memory of this service. Only locks that the principal may read.',
      tags: ['History'],
      querystring: historyQuerySchema,
      response: { 200: ref('HistoryPage') },
    }),
    handler: (request, reply) => reply.send(pageOf(history, request)),
  });
  app.route<{ Querystring: { readonly namespace?: string } }>({
    method: 'GET',
    url: '/v2/history/summary',
    config: { needs: 'read', scope: () => null },
    schema: described({
      operationId: 'historySummary',
      summary: 'Get waits, holds, contention and losses, as far as this service saw them',
      description: 'Kept in the memory of this service. Only locks that the principal may read.',
      tags: ['History'],
      querystring: summaryQuerySchema,
      response: { 200: ref('HistorySummary') },
    }),
    handler: (request, reply) => reply.send(summaryOf(history, request)),
  });
}

function sourceOf({ service, since, now, limits }: History): object {
  return { service, since, now, keptMs: limits.historyMs };
}

function pageOf(history: History, request: FastifyRequest<{ Querystring: HistoryQuery }>): object {
  const { namespace, key, ended, limit, before } = request.query;
  const isWanted = wantedIn(request, namespace);
  if (key !== undefined) refuseForeign(request, namespaceOfKey(checkStoredKey(key)));
  const most = pageLengthOf(limit);
  const found: PastHold[] = [];
  for (const hold of history.holds(key)) {
    if (before !== undefined && hold.number >= Number(before)) continue;
    if (ended !== undefined && hold.end.kind !== ended) continue;
    if (!isWanted(namespaceOfKey(hold.key))) continue;
    found.push(hold);
    // One entry more than `most` shows that there is a next page.
    if (found.length > most) break;
  }
  const last = found.length > most ? found[most - 1] : undefined;
  const holds = found.slice(0, most).map(holdJson);
  return { ...sourceOf(history), holds, next: last ? String(last.number) : null };
}

/** Made member by member, so that no hold id gets in. */
function holdJson(hold: PastHold): object {
  const { key, owner, token, permits, capacity, acquiredAt, waitedMs, seen, end } = hold;
  const heldMs = acquiredAt === null ? null : Math.max(0, end.at - acquiredAt);
  const { kind: ended, by, reason } = end;
  return {
    ...{ key, owner, token, permits, capacity, acquiredAt, endedAt: end.at },
    ...{ waitedMs: waitedMs === null ? null : Math.round(waitedMs), heldMs, ended, by, reason, seen },
  };
}

function summaryOf(
  history: History,
  request: FastifyRequest<{ Querystring: { readonly namespace?: string } }>,
): object {
  const { total, byKey, isPartial } = history.summary(wantedIn(request, request.query.namespace));
  const most = (of: (tally: Tally) => number): readonly object[] =>
    [...byKey]
      .filter(([, tally]) => of(tally) > 0)
      .sort(([, a], [, b]) => of(b) - of(a) || b.waitedMs - a.waitedMs)
      .slice(0, KEYS_SHOWN)
      .map(([key, tally]) => keyJson(key, tally));
  return {
    ...sourceOf(history),
    counts: countsOf(total),
    waits: bucketsOf(total.waits, WAIT_BUCKETS_MS),
    holds: bucketsOf(total.holds, HOLD_BUCKETS_MS),
    contended: most(({ counts }) => counts.contended),
    lost: most(({ counts }) => counts.lost + counts.expired + counts.evicted),
    partial: isPartial,
  };
}

function keyJson(key: string, tally: Tally): object {
  const { waitedMs, longestWaitMs } = tally;
  return {
    key,
    ...countsOf(tally),
    waitedMs: Math.round(waitedMs),
    longestWaitMs: Math.round(longestWaitMs),
  };
}

/** No negative counts: a finding may replace one of a slot that was dropped meanwhile. */
function countsOf({ counts }: Tally): object {
  return Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, Math.max(0, count)]));
}

function bucketsOf(counts: readonly number[], bounds: readonly number[]): readonly object[] {
  return counts.map((count, index) => ({ upToMs: bounds[index] ?? null, count }));
}

/** Rights are checked at the time of reading, because they may have changed. Throws for a namespace without the right. */
function wantedIn(request: FastifyRequest, asked: string | undefined): (namespace: string) => boolean {
  if (asked !== undefined) refuseForeign(request, checkNamespace(asked));
  const known = new Map<string, boolean>();
  return (namespace) => {
    const isKnown = known.get(namespace);
    if (isKnown !== undefined) return isKnown;
    const may = (asked === undefined || namespace === asked) && request.may('read', namespace);
    known.set(namespace, may);
    return may;
  };
}
