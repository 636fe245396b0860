/** What the parts of the service share, and how a part is added. */
import type { FastifyInstance } from 'fastify';
import type { Store } from 'holdfast';
import type { Logger } from 'pino';
import type { Bulletin } from '../bulletin.js';
import type { Desk } from '../lines/desk.js';
import type { Lines } from '../lines/lines.js';
import type { Audit } from './audit.js';
import type { Limits } from './limits.js';
import type { Pace } from './pace.js';
import type { Readiness } from './readiness.js';

export interface ServiceParts {
  readonly store: Store;
  readonly log: Logger;
  readonly limits: Limits;
  /** Says commands to the store: batched, asked again while the outcome is unknown, bounded in time. */
  readonly desk: Desk;
  /** Acquires, waiting where that is asked for. */
  readonly lines: Lines;
  /** What happens here, for metrics and for those who watch. */
  readonly bulletin: Bulletin;
  /** How often parts look at the store by themselves. */
  readonly pace: Pace;
  /** Whether the service may be sent work. */
  readonly readiness: Readiness;
  /** Written before an eviction is done, and again with its outcome. */
  readonly audit: Audit;
  /** Aborts when the service begins to close: whatever is held open ends then. */
  readonly closing: AbortSignal;
}

/** One part of the service: `/v2`, `/v1`, metrics, the dashboard. Each is registered in a context of its own. */
export interface Part {
  readonly name: string;
  register(app: FastifyInstance, parts: ServiceParts): void | Promise<void>;
}
