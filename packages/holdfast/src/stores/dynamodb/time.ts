/**
 * DynamoDB's time, by the `Date` header of its replies: whole seconds, cut off. It is read off every reply of a client,
 * also those to calls that are none of ours, and attempt by attempt, inside the SDK's own retries. One estimate a
 * client: all stores on it know as much.
 */
import { systemClock } from '../../clock.js';
import { UnsupportedError } from '../../protocol/index.js';
import { notExecuted } from '../clients/errors.js';
import type { StoreTime } from '../compare-and-swap/register.js';
import { TimeEstimate } from '../compare-and-swap/time-estimate.js';
import type { DynamodbClient } from './client.js';
import { noteUnsent } from './trouble.js';

/** What the header cuts off. */
const SECOND_MS = 1_000;
/** Replies come from many servers, whose clocks are kept together by Amazon to far less than this. */
const ALLOWANCE_MS = 25;
/** Of an estimate that one reply made, with a second for its way. Many make it far smaller. */
export const CLOCK_ERROR_MS = SECOND_MS + 2 * ALLOWANCE_MS + 1_000;

interface Watched {
  readonly estimate: TimeEstimate;
  /** Whether the last reply had the header. */
  isDated: boolean;
}

type Handler = (args: unknown) => Promise<{ readonly response?: unknown }>;

const watchedClients = new WeakMap<object, Watched>();

/** `ask` is a cheap call, answered by the server that has the table. */
export function timeOf(client: DynamodbClient, ask: () => Promise<unknown>): StoreTime {
  const watched = watch(client);
  const { estimate } = watched;
  return {
    reading: () => estimate.reading(),
    isFresh: () => estimate.isFresh(),
    get jumps() {
      return estimate.jumps;
    },
    async sample() {
      await ask();
      if (watched.isDated) return;
      throw new UnsupportedError(
        'This endpoint sends no Date header with its replies, so its time is not known, and locks are kept by that. ' +
          'DynamoDB sends it; if something stands in between, let it pass the header on.',
      );
    },
  };
}

function watch(client: DynamodbClient): Watched {
  const known = watchedClients.get(client);
  if (known) return known;
  const watched: Watched = { estimate: new TimeEstimate(ALLOWANCE_MS), isDated: false };
  const middleware = (next: Handler): Handler => {
    let mayBeExecuted = false;
    return async (args) => {
      const sentMs = systemClock.monotonicMs();
      try {
        const result = await next(args);
        note(watched, result.response, sentMs);
        mayBeExecuted = true;
        return result;
      } catch (error) {
        mayBeExecuted ||= notExecuted(error) === null;
        if (!mayBeExecuted) noteUnsent(error);
        throw error;
      }
    };
  };
  // The innermost place: refusals are still replies there, and nothing has been waited for since sending.
  client.middlewareStack.add(middleware as never, { step: 'deserialize', priority: 'low' } as never);
  watchedClients.set(client, watched);
  return watched;
}

function note(watched: Watched, response: unknown, sentMs: number): void {
  const from = Date.parse(dateIn(response) ?? '');
  watched.isDated = !Number.isNaN(from);
  if (watched.isDated) {
    watched.estimate.note(sentMs, systemClock.monotonicMs(), from, from + SECOND_MS);
  }
}

function dateIn(response: unknown): string | undefined {
  const { headers } = (response ?? {}) as { readonly headers?: Readonly<Record<string, unknown>> };
  if (!headers) return undefined;
  const name = Object.keys(headers).find((header) => header.toLowerCase() === 'date');
  const value = name === undefined ? undefined : headers[name];
  return typeof value === 'string' ? value : undefined;
}
