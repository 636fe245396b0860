/** GET: one lock, many locks, and what the store promises. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Snapshot } from 'holdfast/protocol';
import { wallMs } from '../clock.js';
import type { ServiceParts } from '../http/service-parts.js';
import { NOBODY } from '../lines/line.js';
import { ref } from '../openapi/schema.js';
import { checkKey, namespaceOf, namespaceOfKey, prefixOf } from './names.js';
import { keyIn, LOCK_PATH, onLock, refuseForeign } from './path.js';
import { listingsBehind, within } from './reach.js';
import { listQuerySchema, pathSchema } from './request-schemas.js';
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

const LIMIT = '100';
const LIMIT_MAX = 1_000;
/** A page ends here, however many locks it has; a single lock is shown whole. */
const PAGE_BYTES_MAX = 1_000_000;

export function lookingRoutes(app: FastifyInstance, parts: ServiceParts): void {
  app.route({
    method: 'GET',
    url: LOCK_PATH,
    config: onLock('read'),
    schema: described({
      operationId: 'inspect',
      summary: 'Get a lock: its holders and waiters',
      description: 'A lock that nobody holds or waits for is a 200, too.',
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
      summary: 'List the locks that somebody holds or waits for',
      description: 'Ordered by the UTF-8 bytes of their keys. Only locks that the principal may read.',
      tags: ['Locks'],
      querystring: listQuerySchema,
      response: { 200: ref('LockPage') },
    }),
    handler: (request) => list(parts, request),
  });
  app.route({
    method: 'GET',
    url: '/v2/probe',
    config: { needs: 'read', scope: () => null },
    schema: described({
      operationId: 'probe',
      summary: 'Get what the store promises, as it is configured',
      tags: ['Store protocol'],
      response: { 200: ref('Probe') },
    }),
    handler: async () => {
      const { server, now, findings } = await parts.desk.probe();
      const { name, traits } = parts.store;
      return { store: name, traits, server, now, findings };
    },
  });
}

async function inspect({ desk, lines }: ServiceParts, request: FastifyRequest): Promise<LockView> {
  const key = keyIn(request);
  const snapshot = await desk.read(key);
  if (!snapshot) return lockView(emptyView(key, wallMs()), NOBODY, 'json');
  return lockView(snapshot, lines.waitersHere(key), 'json');
}

interface Page {
  readonly locks: readonly LockView[];
  /** The last of them, where there are more. */
  readonly next: string | null;
}

async function list(
  { desk, lines }: ServiceParts,
  request: FastifyRequest<{ Querystring: ListQuery }>,
): Promise<Page> {
  const { namespace, prefix = '', key, limit = LIMIT, after, metadata = 'json' } = request.query;
  const mayRead = (name: string): boolean => request.may('read', namespaceOfKey(name));
  const show = (snapshot: Snapshot): LockView =>
    lockView(snapshot, lines.waitersHere(snapshot.key), metadata);
  if (key !== undefined) {
    refuseForeign(request, namespaceOfKey(checkKey(key)));
    const snapshot = await desk.read(key);
    return { locks: snapshot ? [show(snapshot)] : [], next: null };
  }
  if (namespace !== undefined) refuseForeign(request, namespaceOf(namespace));
  const most = Math.min(Number(limit), LIMIT_MAX);
  const locks: LockView[] = [];
  let bytes = 0;
  let isFull = false;
  const take = (snapshot: Snapshot): boolean => {
    // Not all that begins so: `read:team-*` is no right on the key `team-x`, which is in no namespace.
    if (!mayRead(snapshot.key)) return true;
    const view = show(snapshot);
    bytes += Buffer.byteLength(JSON.stringify(view));
    // Found by one that no longer fits, so that there is a next page only where something is on it.
    isFull = locks.length === most || (locks.length > 0 && bytes > PAGE_BYTES_MAX);
    if (!isFull) locks.push(view);
    return !isFull;
  };
  const asked = `${namespace === undefined ? '' : `${namespaceOf(namespace)}/`}${prefixOf(prefix)}`;
  const begins = within(request.principal.reach('read'), asked);
  for (const query of listingsBehind(begins, after && checkKey(after))) {
    await desk.each(query, take);
    if (isFull) return { locks, next: locks.at(-1)?.key ?? null };
  }
  return { locks, next: null };
}
