/** Commands as requests: which commands share a request, and which reply belongs to which command. */
import { systemClock } from '../../clock.js';
import { ATTEMPT_MS, type Command, type Reply } from '../../protocol/index.js';
import type { Connection } from './connection.js';
import { errorOf, problemIn, RefusedRequestError } from './errors.js';

/** The service accepts no more in one request. */
const COMMANDS_MAX = 512;
/** Half of what the service accepts: proxies have limits of their own. */
const BYTES_MAX = 512 * 1_024;
const REQUESTS_MAX = 4;

interface PendingCommand {
  readonly command: Command;
  readonly text: string;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: unknown) => void;
}

/** Commands that travel in one request. */
interface Batch {
  readonly commands: PendingCommand[];
  bytes: number;
}

/** Adds the commands of the other batch; false where they do not fit. A command that is too large travels alone. */
function join(batch: Batch, { commands, bytes }: Batch): boolean {
  const isFull = batch.commands.length + commands.length > COMMANDS_MAX || batch.bytes + bytes > BYTES_MAX;
  if (isFull && batch.commands.length > 0) return false;
  batch.commands.push(...commands);
  batch.bytes += bytes;
  return true;
}

export class CommandRequests {
  readonly #connection: Connection;
  /** Renewals have requests of their own, so that they never wait behind claims (F14). */
  readonly #renewals = new RequestLane((commands) => this.#send(commands));
  readonly #others = new RequestLane((commands) => this.#send(commands));

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  apply(commands: readonly Command[]): readonly Promise<Reply>[] {
    const batches = new Map<RequestLane, Batch[]>();
    /** All commands of a key are in the lane of its first one, in order. */
    const laneOf = new Map<string, RequestLane>();
    const replies = commands.map(
      (command) =>
        new Promise<Reply>((resolve, reject) => {
          const text = JSON.stringify(command);
          const lane = laneOf.get(command.key) ?? (command.kind === 'renew' ? this.#renewals : this.#others);
          laneOf.set(command.key, lane);
          const one = {
            commands: [{ command, text, resolve, reject }],
            bytes: Buffer.byteLength(text) + 1,
          };
          const known = batches.get(lane);
          const last = known?.at(-1);
          if (!known) batches.set(lane, [one]);
          else if (!last || !join(last, one)) known.push(one);
        }),
    );
    for (const [lane, all] of batches) {
      const [first] = all;
      if (first && all.length === 1) lane.add(first);
      else void this.#sendInOrder(all);
    }
    return replies;
  }

  /** One after the other: commands of one key may be in two of the batches. */
  async #sendInOrder(batches: readonly Batch[]): Promise<void> {
    for (const { commands } of batches) await this.#send(commands);
  }

  /** Settles every command, and never rejects. */
  async #send(commands: readonly PendingCommand[]): Promise<void> {
    try {
      const body = `{"commands":[${commands.map(({ text }) => text).join(',')}]}`;
      const replies = repliesIn(await this.#connection.request('/v2/batch', body), commands.length);
      for (const [index, command] of commands.entries()) settle(command, replies[index]);
    } catch (error) {
      if (commands.length > 1 && error instanceof RefusedRequestError) {
        // One invalid command must not fail the others of its request. Nothing of the request was executed.
        const half = Math.ceil(commands.length / 2);
        await this.#send(commands.slice(0, half));
        await this.#send(commands.slice(half));
      } else for (const { reject } of commands) reject(error);
    }
  }
}

/**
 * Requests of one kind, a few at a time. Commands that arrive while those are unanswered share the next request. A
 * request that is not answered soon no longer counts, so that a service that hangs blocks nobody: the core sends its
 * commands again, and that starts the next request.
 */
class RequestLane {
  readonly #send: (commands: readonly PendingCommand[]) => Promise<void>;
  #waiting: Batch[] = [];
  readonly #unanswered = new Set<{ readonly sentMs: number }>();

  /** `send` never rejects. */
  constructor(send: (commands: readonly PendingCommand[]) => Promise<void>) {
    this.#send = send;
  }

  add(batch: Batch): void {
    this.#waiting.push(batch);
    this.#flush();
  }

  #flush(): void {
    while (this.#waiting.length > 0 && this.#countUnanswered() < REQUESTS_MAX) void this.#sendNext();
  }

  #countUnanswered(): number {
    const fromMs = systemClock.monotonicMs() - ATTEMPT_MS;
    let count = 0;
    for (const { sentMs } of this.#unanswered) if (sentMs > fromMs) count += 1;
    return count;
  }

  /** As many of the waiting batches as fit into one request, in order. */
  async #sendNext(): Promise<void> {
    const all: Batch = { commands: [], bytes: 0 };
    const left = this.#waiting.findIndex((batch) => !join(all, batch));
    this.#waiting = left === -1 ? [] : this.#waiting.slice(left);
    const request = { sentMs: systemClock.monotonicMs() };
    this.#unanswered.add(request);
    await this.#send(all.commands);
    this.#unanswered.delete(request);
    this.#flush();
  }
}

function repliesIn(body: unknown, count: number): readonly unknown[] {
  const replies = typeof body === 'object' && body !== null && 'replies' in body ? body.replies : null;
  if (Array.isArray(replies) && replies.length === count) return replies;
  throw new Error('The response of the service is not a list of replies.');
}

/** The core checks whether the reply fits its command. */
function settle({ command, resolve, reject }: PendingCommand, reply: unknown): void {
  if (typeof reply !== 'object' || reply === null) {
    reject(new Error('The service left a command unanswered.'));
  } else if ('problem' in reply) {
    reject(errorOf(problemIn(reply.problem) ?? { code: 'unknown', detail: 'no reason given' }, command.key));
  } else resolve(reply as Reply);
}
