/**
 * Checks every decision of the store: permits stay within capacity, tokens rise in the order of decisions, an expiry never
 * moves back, no hold is ended by another, no waiter is overtaken. Keeps a record of every hold: its tokens, its latest
 * expiry, and how it ended.
 */
import { sumOf } from './calls.js';
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
import type { RunResult } from './run-result.js';
import type { Schedule } from './schedule.js';
import type { Decided } from './server.js';

export type Ending = 'released' | 'expired' | 'evicted';

export interface HoldRecord {
  readonly hold: HoldId;
  readonly key: string;
  readonly permits: number;
  readonly capacity: number;
  /** The token of its first lease; leases handed over have higher ones. */
  readonly token: number;
  readonly isGhost: boolean;
  /** The latest that any decision gave. */
  expiresAt: number;
  ended: Ending | null;
  /** The wake-up for the eviction reached its process. */
  knowsEviction: boolean;
  /** Handed off: another process adopts it, or it expires. */
  isHandedOff: boolean;
}

interface Block {
  readonly first: number;
  readonly last: number;
  readonly record: HoldRecord;
}

interface KeyHistory {
  readonly blocks: Block[];
  readonly open: Map<string, HoldRecord>;
  /** Per hold: when a release was last decided, by the store's clock. */
  readonly releasedAt: Map<string, number>;
  tokenMax: number;
  lastProcess: string;
}

/** An exclusive hold reserves a whole block of tokens. */
const BLOCK_LESS_ONE = TOKEN_BLOCK - 1;

const nameOf = ({ process, number }: HoldId): string => `${process}/${number}`;

const isAmong = (list: readonly { readonly hold: HoldId }[], id: HoldId): boolean => {
  return list.some(({ hold }) => sameHold(hold, id));
};

export class DecisionChecker {
  readonly #histories = new Map<string, KeyHistory>();
  readonly #schedule: Schedule;
  readonly #result: RunResult;
  /** A waiter left the queue, and neither a grant nor its expiry removed it. */
  onLeft: (key: string, waiter: Waiter) => void = () => {};
  /** A release ended this hold: its leases must not say `held` any more. */
  onReleased: (record: HoldRecord) => void = () => {};

  constructor(schedule: Schedule, result: RunResult) {
    this.#schedule = schedule;
    this.#result = result;
  }

  /** The hold whose block contains this token. */
  recordOf(key: string, token: number): HoldRecord | null {
    const blocks = this.#histories.get(key)?.blocks ?? [];
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

  knowsEviction(key: string, isOwn: (hold: HoldId) => boolean): void {
    for (const { record } of this.#histories.get(key)?.blocks.slice(-64) ?? []) {
      if (record.ended === 'evicted' && isOwn(record.hold)) record.knowsEviction = true;
    }
  }

  /**
   * The hold has no lease in its process: it was handed off, or granted to a duplicate of a claim. The process cannot
   * know of the latter; it ends with its ttl.
   */
  isUnattended(key: string, hold: HoldId): boolean {
    const record = this.#histories.get(key)?.open.get(nameOf(hold));
    return record !== undefined && (record.isGhost || record.isHandedOff);
  }

  onDecision({ command, isCopy, before, decision, now }: Decided): void {
    const history = this.#historyOf(command.key);
    const { state, reply } = decision;
    const by = command.kind === 'evict' ? 'operator' : nameOf(command.hold);
    this.#result.note(
      this.#schedule.nowMs,
      command.key,
      by,
      command.kind,
      reply.kind,
      state.token,
      reply.decision,
    );
    const added = this.#follow(history, command, isCopy, state, now);
    if (decision.reply.kind === 'renewed' && decision.reply.block && command.kind === 'renew') {
      const record = history.open.get(nameOf(command.hold));
      if (record) this.#reserve(history, record, decision.reply.block.token, decision.reply.block.tokenLast);
    }
    if (command.kind === 'release') history.releasedAt.set(nameOf(command.hold), now);
    if (!decision.changed) return;
    this.#checkPermits(command.key, state, now);
    if (added) this.#checkLine(command, added, before, state, now);
    for (const waiter of before?.waiters ?? []) {
      if (waiter.expiresAt <= now || isAmong(state.waiters, waiter.hold)) continue;
      if (!isAmong(state.holders, waiter.hold)) this.onLeft(command.key, waiter);
    }
  }

  /** Updates the records; returns the holder that this decision added, if any. */
  #follow(history: KeyHistory, command: Command, isGhost: boolean, state: State, now: number): Holder | null {
    let added: Holder | null = null;
    for (const holder of state.holders) {
      const record = history.open.get(nameOf(holder.hold));
      if (!record) {
        added = holder;
        this.#open(history, command, holder, isGhost);
      } else {
        if (holder.expiresAt < record.expiresAt)
          this.#violate('expiry moved back', command.key, nameOf(holder.hold));
        record.expiresAt = Math.max(record.expiresAt, holder.expiresAt);
      }
    }
    if (history.open.size > state.holders.length) this.#close(history, command, state, now);
    return added;
  }

  #open(history: KeyHistory, { key }: Command, holder: Holder, isGhost: boolean): void {
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
      knowsEviction: false,
      isHandedOff: false,
    };
    history.open.set(nameOf(hold), record);
    if (this.#isEnded(history, hold, acquiredAt)) this.#violate('granted after its end', key, nameOf(hold));
    this.#result.grants += 1;
    if (history.lastProcess !== '' && history.lastProcess !== hold.process) this.#result.changes += 1;
    history.lastProcess = hold.process;
    this.#reserve(history, record, token, permits === capacity ? token + BLOCK_LESS_ONE : token);
  }

  /** The store keeps a mark for released holds, so that a late claim is not granted. */
  #isEnded(history: KeyHistory, hold: HoldId, now: number): boolean {
    const releasedAt = history.releasedAt.get(nameOf(hold));
    return releasedAt !== undefined && now < releasedAt + KEEP_MS;
  }

  #reserve(history: KeyHistory, record: HoldRecord, first: number, last: number): void {
    if (first <= history.tokenMax) {
      this.#violate('token order', record.key, `token ${first} was reserved after ${history.tokenMax}`);
    }
    history.tokenMax = Math.max(history.tokenMax, last);
    history.blocks.push({ first, last, record });
  }

  #close(history: KeyHistory, command: Command, state: State, now: number): void {
    for (const [name, record] of history.open) {
      if (isAmong(state.holders, record.hold)) continue;
      history.open.delete(name);
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
    const live = [...state.holders, ...state.rests].filter(({ expiresAt }) => expiresAt > now);
    const { permits, capacity } = sumOf(live);
    if (permits > capacity) this.#violate('permits', key, `${permits} of ${capacity} given`);
  }

  /** A grant must not overtake a waiter ahead of it that was not woken yet. */
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

  #historyOf(key: string): KeyHistory {
    const known = this.#histories.get(key);
    if (known) return known;
    const history: KeyHistory = {
      blocks: [],
      open: new Map(),
      releasedAt: new Map(),
      tokenMax: 0,
      lastProcess: '',
    };
    this.#histories.set(key, history);
    return history;
  }

  #violate(kind: string, key: string, text: string): void {
    this.#result.violate(kind, this.#schedule.nowMs, `${key}: ${text}`);
  }
}
