/** Commands as requests: which commands share a request, and which reply belongs to which command. */
import type { Command, Reply } from '../../protocol/index.js';
import type { Connection } from './connection.js';
import { errorOf, problemIn, RefusedRequestError } from './errors.js';
import { type Batch, fits, RequestLane } from './request-lane.js';

interface PendingCommand {
  readonly command: Command;
  readonly text: string;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: unknown) => void;
}

type LaneName = 'renewals' | 'others';

export class CommandRequests {
  readonly #connection: Connection;
  /** Renewals have requests of their own, so that they never wait behind claims (F14). */
  readonly #lanes: Readonly<Record<LaneName, RequestLane<PendingCommand>>>;

  constructor(connection: Connection) {
    this.#connection = connection;
    const send = (commands: readonly PendingCommand[]): Promise<void> => this.#send(commands);
    this.#lanes = { renewals: new RequestLane(send), others: new RequestLane(send) };
  }

  apply(commands: readonly Command[]): readonly Promise<Reply>[] {
    const pending: PendingCommand[] = [];
    const replies = commands.map(
      (command) =>
        new Promise<Reply>((resolve, reject) => {
          pending.push({ command, text: JSON.stringify(command), resolve, reject });
        }),
    );
    for (const [lane, batches] of batchesOf(pending)) {
      const [first] = batches;
      if (first && batches.length === 1) this.#lanes[lane].add(first);
      else void this.#sendInOrder(batches);
    }
    return replies;
  }

  /** One after the other: commands of one key may be in two of the batches. */
  async #sendInOrder(batches: readonly Batch<PendingCommand>[]): Promise<void> {
    for (const { commands } of batches) await this.#send(commands);
  }

  /** Settles every command, and never rejects. */
  async #send(commands: readonly PendingCommand[]): Promise<void> {
    try {
      const body = `{"commands":[${commands.map(({ text }) => text).join(',')}]}`;
      const replies = repliesIn(await this.#connection.request('/v2/batch', body), commands.length);
      for (const [index, command] of commands.entries()) settle(command, replies[index]);
    } catch (error) {
      if (commands.length > 1 && error instanceof RefusedRequestError) await this.#sendHalves(commands);
      else for (const { reject } of commands) reject(error);
    }
  }

  /** One invalid command must not fail the others of its request. Nothing of the request was executed. */
  async #sendHalves(commands: readonly PendingCommand[]): Promise<void> {
    const half = Math.ceil(commands.length / 2);
    await this.#send(commands.slice(0, half));
    await this.#send(commands.slice(half));
  }
}

/** All commands of a key are in the lane of its first one, in order. */
function batchesOf(
  pending: readonly PendingCommand[],
): ReadonlyMap<LaneName, readonly Batch<PendingCommand>[]> {
  const batches = new Map<LaneName, Batch<PendingCommand>[]>();
  const laneOf = new Map<string, LaneName>();
  for (const one of pending) {
    const { key, kind } = one.command;
    const lane = laneOf.get(key) ?? (kind === 'renew' ? 'renewals' : 'others');
    laneOf.set(key, lane);
    const known = batches.get(lane) ?? [];
    batches.set(lane, known);
    add(known, one);
  }
  return batches;
}

function add(batches: Batch<PendingCommand>[], pending: PendingCommand): void {
  const one = { commands: [pending], bytes: Buffer.byteLength(pending.text) + 1 };
  const last = batches.at(-1);
  if (!last || !fits(last, one)) {
    batches.push(one);
    return;
  }
  last.commands.push(pending);
  last.bytes += one.bytes;
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
    return;
  }
  if (!('problem' in reply)) {
    resolve(reply as Reply);
    return;
  }
  reject(errorOf(problemIn(reply.problem) ?? { code: 'unknown', detail: 'no reason given' }, command.key));
}
