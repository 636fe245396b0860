/** GET: one lock, many locks, and what the store promises. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Snapshot } from 'holdfast/protocol';
import { wallMs } from '../clock.js';
import type { ServiceParts } from '../http/service-parts.js';
import { checkKey, namespaceOf, namespaceOfKey, prefixOf } from './names.js';
import { keyIn, LOCK_PATH, onLock } from './path.js';
import { described, listQuerySchema, listSchema, lockSchema, pathSchema } from './schemas.js';
import { emptyView, type LockView, lockView, type MetadataForm } from './views.js';

interface ListQuery {
  readonly namespace?: string;
  readonly prefix?: string;
  readonly key?: string;
  readonly limit?: string;
  readonly after?: string;
  readonly metadata?: MetadataForm;
}

const LIMIT = 100;
/** A store that has more is listed by prefix. */
const LISTED_MAX = 100_000;

export function lookingRoutes(app: FastifyInstance, parts: ServiceParts): void {
  app.route({
    method: 'GET',
    url: LOCK_PATH,
    config: onLock('read'),
    schema: described({
      operationId: 'inspect',
      summary: 'Look at a lock',
      params: pathSchema,
      response: { 200: lockSchema },
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
      querystring: listQuerySchema,
      response: { 200: listSchema },
    }),
    handler: (request) => list(parts, request),
  });
  app.route({
    method: 'GET',
    url: '/v2/probe',
    config: { needs: 'read', scope: () => null },
    schema: described({ operationId: 'probe', summary: 'What the store, as configured, really promises' }),
    handler: async () => {
      const { server, now, findings } = await parts.desk.probe();
      const { name, traits } = parts.store;
      return { store: name, traits, server, now, findings };
    },
  });
}

async function inspect({ desk, lines }: ServiceParts, request: FastifyRequest): Promise<LockView> {
  const key = keyIn(request);
  // Asked all the same: how long the answer takes should not tell a foreign lock from an empty one.
  const snapshot = await desk.read(key);
  if (request.foreign || !snapshot) return lockView(emptyView(key, snapshot?.now ?? wallMs()), [], 'json');
  return lockView(snapshot, lines.waitersBehind(key), 'json');
}

async function list(
  { desk, lines }: ServiceParts,
  request: FastifyRequest<{ Querystring: ListQuery }>,
): Promise<{ readonly locks: readonly LockView[]; readonly next: string | null }> {
  const { namespace, prefix = '', key, limit, after, metadata = 'json' } = request.query;
  // Answered without a look: neither the time nor the answer tells a foreign namespace from an empty one.
  const asked = key ?? (prefix.includes('/') ? prefix : undefined);
  const only = namespace ?? (asked === undefined ? undefined : namespaceOfKey(asked));
  if (only !== undefined && !request.may('read', only)) return { locks: [], next: null };
  const most = Math.min(limit === undefined ? LIMIT : Number(limit), 1_000);
  const found = key === undefined ? await listed(desk, namespace, prefix, after, most) : await one(desk, key);
  const visible = found.filter((snapshot) => request.may('read', namespaceOfKey(snapshot.key)));
  const page = visible.slice(0, most);
  const next = visible.length > most ? (page.at(-1)?.key ?? null) : null;
  return {
    locks: page.map((snapshot) => lockView(snapshot, lines.waitersBehind(snapshot.key), metadata)),
    next,
  };
}

async function one(desk: ServiceParts['desk'], key: string): Promise<readonly Snapshot[]> {
  const snapshot = await desk.read(checkKey(key));
  return snapshot ? [snapshot] : [];
}

/** Stores list from the start only, so a later page costs what all before it cost. */
async function listed(
  desk: ServiceParts['desk'],
  namespace: string | undefined,
  prefix: string,
  after: string | undefined,
  most: number,
): Promise<readonly Snapshot[]> {
  const from = prefixOf(prefix);
  const whole = namespace === undefined ? from : `${namespaceOf(namespace)}/${from}`;
  // One more than asked for tells whether there are more. Across namespaces nobody knows how many may be read.
  const isFirst = namespace !== undefined && after === undefined;
  const all = await desk.list({ prefix: whole, limit: isFirst ? most + 1 : LISTED_MAX });
  return after === undefined ? all : all.slice(startBehind(all, after));
}

/** Where the page behind this key begins. The key may be gone by now: then the first that sorts behind it. */
function startBehind(all: readonly Snapshot[], after: string): number {
  const at = all.findIndex(({ key }) => key === after);
  if (at !== -1) return at + 1;
  const behind = all.findIndex(({ key }) => Buffer.compare(Buffer.from(key), Buffer.from(after)) > 0);
  return behind === -1 ? all.length : behind;
}
