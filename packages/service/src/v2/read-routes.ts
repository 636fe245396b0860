/** GET: one lock, many locks, and the guarantees of the store. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { checkPrefix, type Snapshot, UnsupportedError } from 'holdfast/protocol';
import { wallMs } from '../clock.js';
import { onNamespace } from '../http/principal.js';
import type { ServiceParts } from '../http/service-parts.js';
import { ref } from '../openapi/schema.js';
import { NO_WAITERS } from '../waiting/request-queues.js';
import {
  checkStoredKey,
  keyIn,
  LOCK_PATH,
  namespaceOfKey,
  narrowed,
  pageLengthOf,
  queriesAfter,
  refuseForeign,
  startOfKeys,
} from './names.js';
import { listQuerySchema, pathSchema } from './request-schemas.js';
import type { ScanQueue } from './scan-queue.js';
import { described } from './schemas.js';
import { emptyView, type LockView, lockView, type MetadataForm } from './views.js';

interface ListQuery {
  readonly namespace?: string;
  readonly prefix?: string;
  readonly key?: string;
  readonly limit?: string;
  readonly after?: string;
  readonly metadata?: MetadataForm;
}

type ListRequest = FastifyRequest<{ Querystring: ListQuery }>;

/** A page ends at this size. A single lock is never cut. */
const PAGE_BYTES_MAX = 1_000_000;

export function readRoutes(app: FastifyInstance, parts: ServiceParts, scans: ScanQueue): void {
  app.route({
    method: 'GET',
    url: LOCK_PATH,
    config: onNamespace('read'),
    schema: described({
      operationId: 'inspect',
      summary: 'Get a lock: its holders and waiters',
      description: 'A lock without holders and waiters is a 200 too.',
      tags: ['Locks'],
      params: pathSchema,
      response: { 200: ref('Lock') },
    }),
    handler: (request) => inspect(parts, request),
  });
  app.route<{ Querystring: ListQuery }>({
    method: 'GET',
    url: '/v2/locks',
    config: { needs: 'read', scope: () => null },
    schema: described({
      operationId: 'list',
      summary: 'List the locks with holders or waiters',
      description: 'Ordered by the UTF-8 bytes of their keys. Only locks that the principal may read.',
      tags: ['Locks'],
      querystring: listQuerySchema,
      response: { 200: ref('LockPage') },
    }),
    handler: async (request, reply) => {
      const { key } = request.query;
      const text = await (key === undefined
        ? scans.run(request, reply, () => list(parts, request))
        : listOne(parts, request, key));
      return reply.header('content-type', 'application/json; charset=utf-8').send(text);
    },
  });
  app.route({
    method: 'GET',
    url: '/v2/probe',
    config: { needs: 'read', scope: () => null },
    schema: described({
      operationId: 'probe',
      summary: 'Get the guarantees of the store, as it is configured',
      tags: ['Store protocol'],
      response: { 200: ref('Probe') },
    }),
    handler: async () => {
      const { server, now, findings } = await parts.client.probe();
      const { name, traits } = parts.store;
      return { store: name, traits, server, now, findings };
    },
  });
}

async function inspect({ client, queues }: ServiceParts, request: FastifyRequest): Promise<LockView> {
  const key = keyIn(request);
  const snapshot = await client.read(key);
  if (!snapshot) return lockView(emptyView(key, wallMs()), NO_WAITERS, 'json');
  return lockView(snapshot, queues.waitersHere(key), 'json');
}

/** One lock by its stored key, which may have any form. */
async function listOne({ client, queues }: ServiceParts, request: ListRequest, key: string): Promise<string> {
  refuseForeign(request, namespaceOfKey(checkStoredKey(key)));
  const snapshot = await client.read(key);
  const form = request.query.metadata ?? 'json';
  const view = snapshot && lockView(snapshot, queues.waitersHere(key), form);
  return pageOf(view ? [JSON.stringify(view)] : [], null);
}

async function list({ client, queues }: ServiceParts, request: ListRequest): Promise<string> {
  const { namespace, prefix = '', limit, after, metadata = 'json' } = request.query;
  const asked = startOfKeys(request, namespace) + checkPrefix(prefix);
  const most = pageLengthOf(limit);
  const texts: string[] = [];
  let last = '';
  let bytes = 0;
  let isFull = false;
  const take = (snapshot: Snapshot): boolean => {
    // A prefix is not enough: `read:team-*` is no right on the key `team-x`, which has no namespace.
    if (!request.may('read', namespaceOfKey(snapshot.key))) return true;
    const text = JSON.stringify(lockView(snapshot, queues.waitersHere(snapshot.key), metadata));
    bytes += Buffer.byteLength(text);
    // Only a lock that does not fit sets this, so that a next page is never empty.
    isFull = texts.length === most || (texts.length > 0 && bytes > PAGE_BYTES_MAX);
    if (isFull) return false;
    texts.push(text);
    last = snapshot.key;
    return true;
  };
  const prefixes = narrowed(request.principal.prefixes('read'), asked);
  for (const query of queriesAfter(prefixes, after && checkStoredKey(after))) {
    try {
      await client.each(query, take);
    } catch (error) {
      // A record of a newer format: the page ends before it, and the next one is refused.
      if (!(error instanceof UnsupportedError) || texts.length === 0) throw error;
      isFull = true;
    }
    if (isFull) return pageOf(texts, last);
  }
  return pageOf(texts, null);
}

/** `next` is the last key of the page if there are more. Built from texts, so that each lock is serialised once. */
function pageOf(texts: readonly string[], next: string | null): string {
  return `{"locks":[${texts.join()}],"next":${JSON.stringify(next)}}`;
}
