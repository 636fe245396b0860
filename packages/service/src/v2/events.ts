/** GET /v2/events: changes of locks, live. GET /v2/inboxes/{id}/events: wake-ups, for the library's `httpStore`. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { UnsupportedError } from 'holdfast';
import { keepSecret } from '../http/request-log.js';
import type { ServiceParts } from '../http/service-parts.js';
import { closed, eventStream, object, text } from '../openapi/schema.js';
import { blanked } from '../waiting/observed-store.js';
import { namespaceOfKey, narrowed, startOfKeys } from './names.js';
import type { ScanQueue } from './scan-queue.js';
import { described } from './schemas.js';
import { type Stream, Streams } from './stream.js';
import { StreamQueue } from './stream-queue.js';
import { Watches } from './watch.js';

const INBOX = text('A name that cannot be guessed: printable ASCII.', {
  minLength: 1,
  maxLength: 200,
  pattern: '^[ -~]+$',
});

export function eventRoutes(app: FastifyInstance, parts: ServiceParts, scans: ScanQueue): void {
  const streams = new Streams(parts);
  const watches = new Watches(parts);
  app.route<{ Querystring: { readonly namespace?: string } }>({
    method: 'GET',
    url: '/v2/events',
    exposeHeadRoute: false,
    config: { needs: 'read', scope: () => null },
    schema: described({
      operationId: 'events',
      summary: 'Watch locks, as server-sent events',
      tags: ['Events'],
      description:
        'First `appeared` for every lock there is, then `ready`. From then on `appeared`, `changed`, `renewed` and ' +
        '`gone`, each with the lock. `trouble` when the store does not answer, and `ready` when it does again. A ' +
        'comment is sent every 15 seconds. Of more than 100,000 locks, only the first 100,000 in the order of their ' +
        'keys are watched.',
      querystring: closed({ namespace: text('Only locks of this namespace.', { maxLength: 64 }) }, [
        'namespace',
      ]),
      response: {
        200: eventStream('LockEvent', 'Events, until the client or the service closes the connection.'),
      },
    }),
    handler: async (request, reply) => {
      const asked = startOfKeys(request, request.query.namespace);
      const prefixes = narrowed(request.principal.prefixes('read'), asked);
      // The stream starts with all known locks, which costs as much as a list.
      await scans.run(request, reply, async () => {
        sendChanges(watches, request, streams.open(request, reply), prefixes);
      });
    },
  });
  app.route<{ Params: { readonly id: string } }>({
    method: 'GET',
    url: '/v2/inboxes/:id/events',
    exposeHeadRoute: false,
    config: { needs: 'lock', scope: () => null },
    schema: described({
      operationId: 'inbox',
      summary: 'Listen to the wake-ups of an inbox, as server-sent events',
      tags: ['Store protocol'],
      description:
        'First `ready`. Then `wake` for every wake-up, and `listening` when the store loses its wake-ups or has them again.',
      params: object({ id: INBOX }),
      response: {
        200: eventStream('InboxEvent', 'Events, until the client or the service closes the connection.'),
      },
    }),
    handler: (request, reply) => sendWakes(parts, streams, request, reply),
  });
}

function sendChanges(
  watches: Watches,
  request: FastifyRequest,
  stream: Stream,
  prefixes: readonly string[],
): void {
  const queue = new StreamQueue(stream, (key) => request.may('read', namespaceOfKey(key)));
  const unready = new Set(prefixes);
  for (const prefix of prefixes) {
    const leave = watches.join(prefix, {
      onChange: (kind, lock) => queue.change(kind, lock),
      onReady: () => {
        unready.delete(prefix);
        if (unready.size === 0) queue.ready();
      },
      onTrouble: () => {
        unready.add(prefix);
        queue.trouble();
      },
    });
    stream.onEnd(leave);
  }
  // Without a right to read any key, no first state has to be awaited.
  if (prefixes.length === 0) queue.ready();
}

async function sendWakes(
  { store, log }: ServiceParts,
  streams: Streams,
  request: FastifyRequest<{ Params: { readonly id: string } }>,
  reply: FastifyReply,
): Promise<void> {
  const { id } = request.params;
  keepSecret(request, id);
  if (!store.listen) throw new UnsupportedError(`The store ${store.name} sends no wake-ups: poll instead.`);
  const stream = streams.open(request, reply);
  const onWake = (key: string, why: string): void => {
    if (request.may('lock', namespaceOfKey(key))) stream.send('wake', { key, why });
  };
  try {
    const stop = await store.listen(id, onWake, (listening) => stream.send('listening', { listening }));
    stream.onEnd(() => {
      stop().catch((error: unknown) =>
        log.warn({ error: blanked(String(error), [id]) }, 'could not stop listening to an inbox'),
      );
    });
    stream.send('ready', {});
  } catch (error) {
    log.warn({ requestId: request.id, error: blanked(String(error), [id]) }, 'could not listen to an inbox');
    stream.send('trouble', { code: 'unknown' });
    stream.end();
  }
}
