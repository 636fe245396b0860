/** Commands as requests: which go together, and whose answer is whose. */
import type { Command, Reply } from '../../protocol/index.js';
import { type Batch, fits, Lane } from './lane.js';
import type { Line } from './line.js';
import { errorOf, problemIn, RefusedRequestError } from './trouble.js';

interface Slot {
  readonly command: Command;
  readonly text: string;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: unknown) => void;
}

type LaneName = 'renewals' | 'others';

export class Batches {
  readonly #line: Line;
  /** Renewals go by themselves, so that they never wait behind claims (F14). */
  readonly #lanes: Readonly<Record<LaneName, Lane<Slot>>>;

  constructor(line: Line) {
    this.#line = line;
    const send = (slots: readonly Slot[]): Promise<void> => this.#send(slots);
    this.#lanes = { renewals: new Lane(send), others: new Lane(send) };
  }

  apply(commands: readonly Command[]): readonly Promise<Reply>[] {
    const slots: Slot[] = [];
    const replies = commands.map(
      (command) =>
        new Promise<Reply>((resolve, reject) => {
          slots.push({ command, text: JSON.stringify(command), resolve, reject });
        }),
    );
    for (const [lane, chain] of chainsOf(slots)) {
      const [first] = chain;
      if (first && chain.length === 1) this.#lanes[lane].add(first);
      else void this.#follow(chain);
    }
    return replies;
  }

  /** More than fits into one request goes in several, one after the other: a key may be in two of them. */
  async #follow(chain: readonly Batch<Slot>[]): Promise<void> {
    for (const { slots } of chain) await this.#send(slots);
  }

  /** Settles every slot, and never rejects. */
  async #send(slots: readonly Slot[]): Promise<void> {
    try {
      const body = `{"commands":[${slots.map(({ text }) => text).join(',')}]}`;
      const answers = answersIn(await this.#line.ask('/v2/batch', body), slots.length);
      for (const [index, slot] of slots.entries()) settle(slot, answers[index]);
    } catch (error) {
      if (slots.length > 1 && error instanceof RefusedRequestError) await this.#sendHalves(slots);
      else for (const { reject } of slots) reject(error);
    }
  }

  /** One command that the service does not take is no reason to refuse the others. Nothing had been done. */
  async #sendHalves(slots: readonly Slot[]): Promise<void> {
    const half = Math.ceil(slots.length / 2);
    await this.#send(slots.slice(0, half));
    await this.#send(slots.slice(half));
  }
}

/** All commands of a key are in the chain that has its first one, in order. */
function chainsOf(slots: readonly Slot[]): ReadonlyMap<LaneName, readonly Batch<Slot>[]> {
  const chains = new Map<LaneName, Batch<Slot>[]>();
  const laneOf = new Map<string, LaneName>();
  for (const slot of slots) {
    const { key, kind } = slot.command;
    const lane = laneOf.get(key) ?? (kind === 'renew' ? 'renewals' : 'others');
    laneOf.set(key, lane);
    const chain = chains.get(lane) ?? [];
    chains.set(lane, chain);
    add(chain, slot);
  }
  return chains;
}

function add(chain: Batch<Slot>[], slot: Slot): void {
  const one = { slots: [slot], bytes: Buffer.byteLength(slot.text) + 1 };
  const last = chain.at(-1);
  if (!last || !fits(last, one)) {
    chain.push(one);
    return;
  }
  last.slots.push(slot);
  last.bytes += one.bytes;
}

function answersIn(body: unknown, count: number): readonly unknown[] {
  const replies = typeof body === 'object' && body !== null && 'replies' in body ? body.replies : null;
  if (Array.isArray(replies) && replies.length === count) return replies;
  throw new Error('The service answered something that is no list of replies.');
}

/** Whether a reply fits its command is for the core to see. */
function settle({ command, resolve, reject }: Slot, answer: unknown): void {
  if (typeof answer !== 'object' || answer === null) {
    reject(new Error('The service left a command unanswered.'));
    return;
  }
  if (!('problem' in answer)) {
    resolve(answer as Reply);
    return;
  }
  reject(errorOf(problemIn(answer.problem) ?? { code: 'unknown', detail: 'no reason given' }, command.key));
}
