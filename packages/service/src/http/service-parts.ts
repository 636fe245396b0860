/** The shared parts of the service, and the shape of a part that answers requests. */
import type { FastifyInstance } from 'fastify';
import type { Store } from 'holdfast';
import type { Logger } from 'pino';
import type { History } from '../history/history.js';
import type { ServiceEvents } from '../service-events.js';
import type { HoldEvents } from '../waiting/hold-events.js';
import type { RequestQueues } from '../waiting/request-queues.js';
import type { ServiceClient } from '../waiting/service-client.js';
import type { Audit } from './audit.js';
import type { Limits } from './limits.js';
import type { PollIntervals } from './poll-intervals.js';
import type { Readiness } from './readiness.js';

export interface ServiceParts {
  readonly store: Store;
  readonly log: Logger;
  readonly limits: Limits;
  /** Sends commands to the store: in batches, again while the outcome is unknown, for a limited time. */
  readonly client: ServiceClient;
  /** Acquires, with waiting. */
  readonly queues: RequestQueues;
  /** Events, for metrics and watchers. */
  readonly events: ServiceEvents;
  /** Events of single holds. */
  readonly holds: HoldEvents;
  /** The history of the locks, as far as this service saw it. */
  readonly history: History;
  /** How often parts read the store by themselves. */
  readonly intervals: PollIntervals;
  /** Whether the service is ready for requests. */
  readonly readiness: Readiness;
  /** Written before an eviction, and again with its outcome. */
  readonly audit: Audit;
  /** Aborts when the service starts to close: open streams end then. */
  readonly closing: AbortSignal;
}

/** One part of the service: `/v2`, `/v1`, metrics, the dashboard. Each is registered in a context of its own. */
export interface Part {
  readonly name: string;
  register(app: FastifyInstance, parts: ServiceParts): void | Promise<void>;
}
