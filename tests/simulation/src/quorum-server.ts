/**
 * The servers of a quorum, seen from outside: a value is chosen once a majority has accepted its ballot. The states of
 * the keys are the chosen values, and the time is the median of the servers' clocks. Every change of a chosen value is
 * checked as a series of decisions.
 */
import {
  type Accept,
  type Ballot,
  type Command,
  compareBallots,
  type Holder,
  type HoldId,
  type Reply,
  type State,
  sameHold,
  type Wake,
} from './library.js';
import type { Members } from './profile.js';
import type { RandomSource } from './random-source.js';
import type { RunResult } from './run-result.js';
import type { Schedule } from './schedule.js';
import { type OnDecision, type Receive, STORE_EPOCH_MS, type StoreView } from './server.js';
import { SimulatedMember } from './simulated-member.js';

interface Chosen {
  readonly ballot: Ballot;
  readonly value: string;
}

const holdName = (key: string, { process, number }: HoldId): string => `${key} ${process}/${number}`;

export class QuorumServer implements StoreView {
  readonly states = new Map<string, State>();
  readonly members: readonly SimulatedMember[];
  readonly #majority: number;
  readonly #schedule: Schedule;
  readonly #result: RunResult;
  readonly #onDecision: OnDecision;
  readonly #chosen = new Map<string, Chosen>();
  /** Per key and ballot: the servers that have accepted it. */
  readonly #votes = new Map<string, Set<number>>();
  readonly #released = new Set<string>();
  /** Values that were chosen at any time, and values that may not be chosen any more, as their writer was told: by key and text. */
  readonly #everChosen = new Set<string>();
  readonly #refused = new Set<string>();
  /** How often a process began to write a value. Repeated commands make the same value again. */
  readonly #writes = new Map<string, number>();
  readonly #inboxes = new Map<string, Receive>();

  constructor(
    members: Members,
    schedule: Schedule,
    random: RandomSource,
    result: RunResult,
    onDecision: OnDecision,
  ) {
    this.#schedule = schedule;
    this.#result = result;
    this.#onDecision = onDecision;
    this.members = Array.from({ length: members.count }, (_, place) => {
      const aheadMs = STORE_EPOCH_MS + random.between(-members.apartMs, members.apartMs);
      return new SimulatedMember(place, aheadMs, schedule);
    });
    this.#majority = Math.floor(members.count / 2) + 1;
    for (const member of this.members) member.onAccepted = (place, accept) => this.#accepted(place, accept);
  }

  get exactMs(): number {
    const times = this.members.map(({ time }) => time).sort((a, b) => a - b);
    return times[this.#majority - 1] ?? 0;
  }

  get now(): number {
    return Math.floor(this.exactMs);
  }

  answers(unreachable: ReadonlySet<number>): boolean {
    const answering = this.members.filter(({ phase, place }) => phase === 'up' && !unreachable.has(place));
    return answering.length >= this.#majority;
  }

  listen(inbox: string, receive: Receive): void {
    this.#inboxes.set(inbox, receive);
  }

  stopListening(inbox: string): void {
    this.#inboxes.delete(inbox);
  }

  send(key: string, { inbox, why }: Wake): void {
    this.#inboxes.get(inbox)?.(key, why);
  }

  /** A process has sent this command. */
  sent(command: Command): void {
    if (command.kind === 'release') this.#released.add(holdName(command.key, command.hold));
  }

  /** A process begins to write this value. */
  writes(key: string, value: string): void {
    const id = `${key} ${value}`;
    this.#writes.set(id, (this.#writes.get(id) ?? 0) + 1);
    this.#refused.delete(id);
  }

  /** The register has told the process whether the value is stored. */
  told(key: string, value: string, isWritten: boolean): void {
    const id = `${key} ${value}`;
    const isChosen = this.#everChosen.has(id);
    if (isWritten && !isChosen) this.#violate('not chosen', key);
    if (isWritten || this.#writes.get(id) !== 1) return;
    if (isChosen) this.#violate('chosen all the same', key);
    this.#refused.add(id);
  }

  #violate(kind: string, key: string): void {
    this.#result.violate(kind, this.#schedule.nowMs, key);
  }

  #accepted(place: number, { key, ballot, value: stored }: Accept): void {
    // Without the ids of the last writes.
    const value = stored.slice(stored.indexOf('\n') + 1);
    const id = `${key} ${ballot}`;
    const votes = this.#votes.get(id) ?? new Set();
    this.#votes.set(id, votes.add(place));
    if (votes.size !== this.#majority) return;
    const before = this.#chosen.get(key) ?? { ballot: '', value: '' };
    // The value of the higher ballot was computed from this one.
    if (compareBallots(ballot, before.ballot) < 0) {
      this.#everChosen.add(`${key} ${value}`);
      return;
    }
    this.#chosen.set(key, { ballot, value });
    this.#everChosen.add(`${key} ${value}`);
    if (this.#refused.has(`${key} ${value}`)) this.#violate('chosen all the same', key);
    if (value !== before.value) this.#changed(key, value === '' ? null : (JSON.parse(value) as State));
  }

  #changed(key: string, after: State | null): void {
    const before = this.states.get(key) ?? null;
    if (after === null || (before && after.decision <= before.decision)) {
      this.#violate('decision order', key);
      return;
    }
    this.states.set(key, after);
    let holders = before?.holders ?? [];
    /** `from` is given once, so that every waiter that leaves counts once. */
    const step = (command: Command, reply: Reply, from: State | null = null): void => {
      const decision = { state: { ...after, holders }, changed: true, reply, wakes: [] };
      this.#onDecision({ command, isCopy: false, before: from, decision, now: this.now });
    };
    const common = { now: this.now, decision: after.decision, othersWait: false };
    for (const gone of holders.filter(({ hold }) => !after.holders.some((one) => sameHold(one.hold, hold)))) {
      holders = holders.filter((holder) => holder !== gone);
      const isEvicted = after.evictions.some((one) => sameHold(one, gone.hold));
      if (isEvicted)
        step({ kind: 'evict', key, upToToken: gone.token }, { kind: 'evicted', count: 1, ...common });
      else if (this.#released.has(holdName(key, gone.hold)))
        step(releaseOf(key, gone.hold), released(common));
      else step(renewOf(key, gone), { kind: 'lost', ...common });
    }
    for (const { process, number, until } of after.ended) {
      const isNew = !before?.ended.some((mark) => mark.process === process && mark.until === until);
      const hold = { process, number };
      if (isNew && this.#released.has(holdName(key, hold))) step(releaseOf(key, hold), released(common));
    }
    for (const kept of after.holders) {
      const known = holders.find(({ hold }) => sameHold(hold, kept.hold));
      if (!known) continue;
      holders = [...holders.filter((holder) => holder !== known), kept];
      // Only a renewal of an exclusive hold reserves tokens without a grant.
      const isRaised = before !== null && after.token > before.token && kept.permits === kept.capacity;
      const block = isRaised ? { token: before.token + 1, tokenLast: after.token } : null;
      step(renewOf(key, kept), { kind: 'renewed', expiresAt: kept.expiresAt, block, ...common });
    }
    const added = after.holders.filter((holder) => !holders.includes(holder));
    added.forEach((holder, index) => {
      const { token, acquiredAt, expiresAt } = holder;
      holders = [...holders, holder];
      const reply: Reply = { kind: 'granted', token, tokenLast: token, acquiredAt, expiresAt, ...common };
      step(renewOf(key, holder), reply, index === 0 ? before : null);
    });
    if (added.length === 0) {
      step({ kind: 'evict', key, upToToken: 0 }, { kind: 'evicted', count: 0, ...common }, before);
    }
  }
}

function released(common: Pick<Reply, 'now' | 'decision' | 'othersWait'>): Reply {
  return { kind: 'released', held: true, ...common };
}

function releaseOf(key: string, hold: HoldId): Command {
  return { kind: 'release', key, hold, minHoldMs: 0 };
}

function renewOf(key: string, { hold }: Holder): Command {
  return { kind: 'renew', key, hold, ttlMs: 0, block: false };
}
