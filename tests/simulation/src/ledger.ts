/**
 * What the store has decided, written down from outside: every hold with its tokens, its last expiry and how it
 * ended. Checks each decision for what must hold whoever asks: permits within capacity, tokens rising in the order
 * of decision, expiry never moving back, nobody's hold ended by another, nobody in line overtaken.
 */
import {
  type Command,
  type Holder,
  type HoldId,
  KEEP_MS,
  type State,
  sameHold,
  TOKEN_BLOCK,
  type Waiter,
} from './library.js';
import type { Schedule } from './schedule.js';
import type { Decided } from './server.js';
import type { Tally } from './tally.js';

export type Ending = 'released' | 'expired' | 'evicted';

export interface HoldRecord {
  readonly hold: HoldId;
  readonly key: string;
  readonly permits: number;
  readonly capacity: number;
  /** Of its first lease; higher ones are handed over. */
  readonly token: number;
  readonly isGhost: boolean;
  /** The highest that any decision has given it. */
  expiresAt: number;
  ended: Ending | null;
  /** Its process was told of the eviction. */
  heardOfEviction: boolean;
  /** No longer its process's: another goes on with it, or nobody, till its ttl. */
  isHandedOff: boolean;
}

interface Block {
  readonly first: number;
  readonly last: number;
  readonly record: HoldRecord;
}

interface Page {
  readonly blocks: Block[];
  readonly open: Map<string, HoldRecord>;
  /** When a release of each was last decided, by the store's time. */
  readonly releasedAt: Map<string, number>;
  tokenMax: number;
  lastProcess: string;
}

/** With an exclusive hold comes a whole block. */
const BLOCK_LESS_ONE = TOKEN_BLOCK - 1;

const nameOf = ({ process, number }: HoldId): string => `${process}/${number}`;

const isAmong = (list: readonly { readonly hold: HoldId }[], id: HoldId): boolean => {
  return list.some(({ hold }) => sameHold(hold, id));
};

export class Ledger {
  readonly #pages = new Map<string, Page>();
  readonly #schedule: Schedule;
  readonly #tally: Tally;
  /** This waiter left the line, and neither its grant nor the end of its life took it out. */
  onLeft: (key: string, waiter: Waiter) => void = () => {};
  /** A release ended this hold: whoever still believes in it is wrong. */
  onReleased: (record: HoldRecord) => void = () => {};

  constructor(schedule: Schedule, tally: Tally) {
    this.#schedule = schedule;
    this.#tally = tally;
  }

  /** The hold that a lease's token was reserved for. */
  recordOf(key: string, token: number): HoldRecord | null {
    const blocks = this.#pages.get(key)?.blocks ?? [];
    let low = 0;
    let high = blocks.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const block = blocks[middle];
      if (!block) break;
      if (token < block.first) high = middle - 1;
      else if (token > block.last) low = middle + 1;
      else return block.record;
    }
    return null;
  }

  heardOfEviction(key: string, isOwn: (hold: HoldId) => boolean): void {
    for (const { record } of this.#pages.get(key)?.blocks.slice(-64) ?? []) {
      if (record.ended === 'evicted' && isOwn(record.hold)) record.heardOfEviction = true;
    }
  }

  /**
   * Nobody in its process stands on it: handed off, or granted to a copy of a claim that the network brought. Its
   * process cannot know of that one, and its ttl ends it.
   */
  isNobodys(key: string, hold: HoldId): boolean {
    const record = this.#pages.get(key)?.open.get(nameOf(hold));
    return record !== undefined && (record.isGhost || record.isHandedOff);
  }

  witness({ command, isCopy, before, decision, now }: Decided): void {
    const page = this.#pageOf(command.key);
    const { state, reply } = decision;
    const by = command.kind === 'evict' ? 'operator' : nameOf(command.hold);
    this.#tally.note(
      this.#schedule.nowMs,
      command.key,
      by,
      command.kind,
      reply.kind,
      state.token,
      reply.decision,
    );
    const added = this.#follow(page, command, isCopy, state, now);
    if (decision.reply.kind === 'renewed' && decision.reply.block && command.kind === 'renew') {
      const record = page.open.get(nameOf(command.hold));
      if (record) this.#reserve(page, record, decision.reply.block.token, decision.reply.block.tokenLast);
    }
    if (command.kind === 'release') page.releasedAt.set(nameOf(command.hold), now);
    if (!decision.changed) return;
    this.#checkPermits(command.key, state, now);
    if (added) this.#checkLine(command, added, before, state, now);
    for (const waiter of before?.waiters ?? []) {
      if (waiter.expiresAt <= now || isAmong(state.waiters, waiter.hold)) continue;
      if (!isAmong(state.holders, waiter.hold)) this.onLeft(command.key, waiter);
    }
  }

  /** Brings the records up to date; the holder that this decision added, if any. */
  #follow(page: Page, command: Command, isGhost: boolean, state: State, now: number): Holder | null {
    let added: Holder | null = null;
    for (const holder of state.holders) {
      const record = page.open.get(nameOf(holder.hold));
      if (!record) {
        added = holder;
        this.#open(page, command, holder, isGhost);
      } else {
        if (holder.expiresAt < record.expiresAt)
          this.#violate('expiry moved back', command.key, nameOf(holder.hold));
        record.expiresAt = Math.max(record.expiresAt, holder.expiresAt);
      }
    }
    if (page.open.size > state.holders.length) this.#close(page, command, state, now);
    return added;
  }

  #open(page: Page, { key }: Command, holder: Holder, isGhost: boolean): void {
    const { hold, permits, capacity, acquiredAt, expiresAt, token } = holder;
    const record: HoldRecord = {
      hold,
      key,
      permits,
      capacity,
      token,
      isGhost,
      expiresAt,
      ended: null,
      heardOfEviction: false,
      isHandedOff: false,
    };
    page.open.set(nameOf(hold), record);
    if (this.#isEnded(page, hold, acquiredAt)) this.#violate('granted after its end', key, nameOf(hold));
    this.#tally.grants += 1;
    if (page.lastProcess !== '' && page.lastProcess !== hold.process) this.#tally.changes += 1;
    page.lastProcess = hold.process;
    this.#reserve(page, record, token, permits === capacity ? token + BLOCK_LESS_ONE : token);
  }

  /** The store keeps its mark for a while, so that nothing said before comes true after. */
  #isEnded(page: Page, hold: HoldId, now: number): boolean {
    const releasedAt = page.releasedAt.get(nameOf(hold));
    return releasedAt !== undefined && now < releasedAt + KEEP_MS;
  }

  #reserve(page: Page, record: HoldRecord, first: number, last: number): void {
    if (first <= page.tokenMax) {
      this.#violate('token order', record.key, `token ${first} was reserved after ${page.tokenMax}`);
    }
    page.tokenMax = Math.max(page.tokenMax, last);
    page.blocks.push({ first, last, record });
  }

  #close(page: Page, command: Command, state: State, now: number): void {
    for (const [name, record] of page.open) {
      if (isAmong(state.holders, record.hold)) continue;
      page.open.delete(name);
      if (record.expiresAt <= now) record.ended = 'expired';
      else if (command.kind === 'evict') record.ended = 'evicted';
      else record.ended = 'released';
      if (record.ended !== 'released') continue;
      if (command.kind !== 'release' || !sameHold(command.hold, record.hold)) {
        this.#violate('ended by another', record.key, `${name} ended by a ${command.kind}`);
      }
      this.onReleased(record);
    }
  }

  #checkPermits(key: string, state: State, now: number): void {
    let permits = 0;
    let capacity = Number.MAX_SAFE_INTEGER;
    for (const taker of [...state.holders, ...state.rests]) {
      if (taker.expiresAt <= now) continue;
      permits += taker.permits;
      capacity = Math.min(capacity, taker.capacity);
    }
    if (permits > capacity) this.#violate('permits', key, `${permits} of ${capacity} given`);
  }

  /** Nobody that stood in line before, and has not missed its window, may be without its turn. */
  #checkLine(command: Command, added: Holder, before: State | null, state: State, now: number): void {
    if (!before) return;
    const place = before.waiters.findIndex(({ hold }) => sameHold(hold, added.hold));
    const ahead = place === -1 ? before.waiters : before.waiters.slice(0, place);
    for (const { hold, expiresAt } of ahead) {
      if (expiresAt <= now || hold.process === added.hold.process) continue;
      const waiter = state.waiters.find((other) => sameHold(other.hold, hold));
      if (waiter && waiter.wokenAt !== null) continue;
      this.#violate('overtaken', command.key, `${nameOf(added.hold)} went before ${nameOf(hold)}`);
    }
  }

  #pageOf(key: string): Page {
    const known = this.#pages.get(key);
    if (known) return known;
    const page: Page = { blocks: [], open: new Map(), releasedAt: new Map(), tokenMax: 0, lastProcess: '' };
    this.#pages.set(key, page);
    return page;
  }

  #violate(kind: string, key: string, text: string): void {
    this.#tally.violate(kind, this.#schedule.nowMs, `${key}: ${text}`);
  }
}
