/**
 * DynamoDB's time, from the `Date` header of its replies: whole seconds, rounded down. It is read from every reply of a
 * client, also to calls of the application, and per attempt, inside the SDK's retries. There is one estimate per client,
 * which all its stores share, also those of its document clients.
 */
import { systemClock } from '../../clock.js';
import { UnsupportedError } from '../../protocol/index.js';
import { notExecuted } from '../clients/errors.js';
import { SECOND_MS } from '../clients/fetch.js';
import type { StoreTime } from '../compare-and-swap/register.js';
import { TimeEstimate } from '../compare-and-swap/time-estimate.js';
import type { DynamodbClient } from './client.js';
import { noteUnsent } from './errors.js';

/** Replies come from many servers, whose clocks differ by far less than this. */
const ALLOWANCE_MS = 25;
/** The error after one reply that took a second. Many replies make it far smaller. */
export const CLOCK_ERROR_MS = SECOND_MS + 2 * ALLOWANCE_MS + 1_000;

interface WatchedClient {
  readonly estimate: TimeEstimate;
  /** Whether the last reply had the header. */
  isDated: boolean;
}

type Handler = (args: unknown) => Promise<{ readonly response?: unknown }>;

/** By the stack of middleware: document clients have that of the client that they were made from. */
const watchedClients = new WeakMap<object, WatchedClient>();

/** `ask`: a cheap call, answered by the server that has the table. */
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
        'This endpoint sends no Date header with its replies, so its time is not known, and locks need it. ' +
          'DynamoDB sends the header; a proxy in between has to pass it on.',
      );
    },
  };
}

function watch({ middlewareStack }: DynamodbClient): WatchedClient {
  const known = watchedClients.get(middlewareStack);
  if (known) return known;
  const watched: WatchedClient = { estimate: new TimeEstimate(ALLOWANCE_MS), isDated: false };
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
  // The innermost step: refusals are still replies there, and no time has passed since the reply.
  middlewareStack.add(middleware as never, { step: 'deserialize', priority: 'low' } as never);
  watchedClients.set(middlewareStack, watched);
  return watched;
}

function note(watched: WatchedClient, response: unknown, sentMs: number): void {
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
