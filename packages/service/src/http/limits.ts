/** Limits of one request, and of all requests together. */
import { InvalidArgumentError } from 'holdfast';

export interface Limits {
  /** The largest body; a batch may have `batchBytes`. */
  readonly bodyBytes: number;
  readonly batchBytes: number;
  readonly batchCommands: number;
  readonly ttlMsMax: number;
  readonly waitMsMax: number;
  /** Waiters in this process, on all keys together. */
  readonly waiters: number;
  /** Open connections. One more closes an idle one. */
  readonly connections: number;
  /** Idle connections of one address or principal, except of a trusted proxy. One more closes the oldest. */
  readonly addressConnections: number;
  /** Open streams of server-sent events. */
  readonly streams: number;
  /** How long the headers, and the whole request, may take to arrive. */
  readonly headersMs: number;
  readonly requestMs: number;
  /** How long an idle connection stays open. */
  readonly idleMs: number;
  /** How long closing waits for open requests. */
  readonly closeMs: number;
  /** Ended holds in the history, and how long they are kept. */
  readonly historyEntries: number;
  readonly historyMs: number;
}

export const DEFAULT_LIMITS: Limits = {
  bodyBytes: 64 * 1_024,
  batchBytes: 1_024 * 1_024,
  batchCommands: 512,
  ttlMsMax: 7 * 24 * 3_600_000,
  waitMsMax: 10 * 60_000,
  waiters: 10_000,
  connections: 20_000,
  addressConnections: 2_000,
  streams: 1_000,
  headersMs: 10_000,
  requestMs: 20_000,
  idleMs: 20_000,
  closeMs: 10_000,
  historyEntries: 10_000,
  historyMs: 24 * 3_600_000,
};

export function limitsOf(given: Partial<Limits>): Limits {
  for (const [name, value] of Object.entries(given)) {
    if (!(name in DEFAULT_LIMITS)) {
      throw new InvalidArgumentError(
        `There is no limit "${name}". The limits are: ${Object.keys(DEFAULT_LIMITS).join(', ')}.`,
      );
    }
    if (!(Number.isSafeInteger(value) && value > 0)) {
      throw new InvalidArgumentError(
        `The limit ${name} is ${String(value)}, but has to be a whole number above 0.`,
      );
    }
  }
  return { ...DEFAULT_LIMITS, ...given };
}
