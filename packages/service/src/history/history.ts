/**
 * The history of this service: holders, keys, times and causes of the ends. It is kept in the memory of this process, for
 * a limited time, and made from the store's replies to requests of this service. Holders that use the store without this
 * service are seen only while a stream of events, such as the dashboard's, makes the service read the store: without their
 * waits, and without the cause of an early end.
 */
import type { Claim, Command, Granted, HolderView, Reply } from 'holdfast/protocol';
import { monotonicMs, wallMs } from '../clock.js';
import { forgetOldest } from '../forget-oldest.js';
import type { ServiceEventDetails, ServiceEvents } from '../service-events.js';
import { type End, type EndKind, isBetter, type KnownHold, type PastHold, PastHolds } from './past-holds.js';
import { type Count, type Summary, Tallies } from './tallies.js';
import { nameOf, type TrackedHold, TrackedHolds } from './tracked-holds.js';

interface HistoryLimits {
  /** The number of ended holds that are kept; twice as many are tracked while they are held. */
  readonly historyEntries: number;
  readonly historyMs: number;
}

/** One lock in one read of the store. */
export interface Sighting {
  readonly now: number;
  readonly holders: readonly Holder[];
  /** The number of all holders, shown or not. */
  readonly holding: number;
}

type Holder = Omit<HolderView, 'metadata'>;
type Eviction = ServiceEventDetails['evicted'];

/** The least time between two searches for expired holds. A renewal may be on its way for as long. */
const SWEEP_MS = 1_000;
/** The most keys whose last eviction is kept. */
const EVICTED_KEYS_MAX = 1_000;

export class History {
  /** The name of this service. */
  readonly service: string;
  /** When it began, by the clock of this machine. */
  readonly since = wallMs();
  readonly limits: HistoryLimits;
  readonly #past: PastHolds;
  readonly #tallies: Tallies;
  readonly #tracked: TrackedHolds;
  readonly #evictions = new Map<string, Eviction>();
  /** How far the store's clock is ahead of this machine's. */
  #aheadMs = 0;
  #sweptMs = monotonicMs();

  constructor(service: string, events: ServiceEvents, limits: HistoryLimits) {
    this.service = service;
    this.limits = limits;
    this.#past = new PastHolds(limits.historyEntries);
    this.#tallies = new Tallies(limits.historyMs);
    this.#tracked = new TrackedHolds(2 * limits.historyEntries);
    events.on('contended', ({ key }) => this.#count(key, 'contended'));
    events.on('refused', ({ key, waitedMs }) => this.#waited(key, 'refused', waitedMs));
    events.on('acquired', ({ key, waitedMs, token }) => {
      this.#waited(key, 'acquired', waitedMs);
      const tracked = token === undefined ? undefined : this.#tracked.withToken(key, token);
      if (tracked) tracked.hold.waitedMs = waitedMs;
    });
    events.on('evicted', (eviction) => this.#evicted(eviction));
  }

  /** The store's clock now, by its last reply. */
  get now(): number {
    return wallMs() + this.#aheadMs;
  }

  /** Ended holds, the newest first. */
  holds(key?: string): readonly PastHold[] {
    this.#sweep();
    return this.#past.newest(key);
  }

  summary(isWanted: (namespace: string) => boolean): Summary {
    this.#sweep();
    return this.#tallies.summary(monotonicMs(), isWanted);
  }

  /** A reply of the store to a command of this service. */
  replied(command: Command, reply: Reply): void {
    this.#aheadMs = reply.now - wallMs();
    const nowMs = monotonicMs();
    if (nowMs - this.#sweptMs >= SWEEP_MS) this.#sweep();
    // An eviction is noted from its event, which has its principal.
    if (command.kind === 'evict') return;
    if (command.kind === 'claim') {
      if (reply.kind === 'granted') this.#granted(command, reply, nowMs);
      return;
    }
    const tracked = this.#tracked.get(nameOf(command.key, command.hold));
    if (tracked) this.#renewedOrEnded(tracked, reply);
    else if (reply.kind === 'released' && reply.held) this.#releasedUnknown(command.key, reply.now);
  }

  /** Two reads of a lock, one after the other. `next` is null when nobody holds the lock any more. */
  observed(key: string, before: Sighting | undefined, next: Sighting | null): void {
    if (next) this.#aheadMs = next.now - wallMs();
    // With very many holders, a read shows only the first.
    if ([before, next].some((seen) => seen && seen.holding > seen.holders.length)) return;
    const now = next?.now ?? this.now;
    const after = new Map(next?.holders.map((holder) => [holder.token, holder]));
    for (const [token, { resting, expiresAt }] of after) {
      const tracked = resting ? undefined : this.#tracked.withToken(key, token);
      if (tracked) this.#stillHeld(tracked, expiresAt, now);
    }
    for (const holder of before?.holders ?? []) {
      const then = after.get(holder.token);
      if (holder.resting || then?.resting === false) continue;
      const isOver = now >= holder.expiresAt;
      const kind = then ? 'released' : isOver ? 'expired' : 'unknown';
      this.#vanished(seenHold(key, holder), endOf(kind, isOver ? holder.expiresAt : now));
    }
  }

  #granted(claim: Claim, { token, tokenLast, acquiredAt, expiresAt, now }: Granted, nowMs: number): void {
    const { key, owner, permits, capacity } = claim;
    const name = nameOf(key, claim.hold);
    const known = this.#tracked.get(name);
    if (known?.hold.token === token) {
      this.#stillHeld(known, expiresAt, now);
      return;
    }
    // An exclusive grant proves that nobody held the lock any more.
    const before = permits === capacity ? this.#tracked.of(key) : [];
    for (const tracked of before) {
      const isOver = tracked.hold.expiresAt <= acquiredAt;
      const at = isOver ? tracked.hold.expiresAt : acquiredAt;
      if (!tracked.past) this.#end(tracked, endOf(isOver ? 'expired' : 'unknown', at));
    }
    this.#tracked.add(name, {
      key,
      token,
      tokenLast,
      owner,
      permits,
      capacity,
      acquiredAt,
      expiresAt,
      waitedMs: null,
      seen: 'requests',
      dueMs: nowMs + expiresAt - now,
    });
  }

  #renewedOrEnded(tracked: TrackedHold, reply: Reply): void {
    const { expiresAt } = tracked.hold;
    const at = Math.min(expiresAt, reply.now);
    if (reply.kind === 'renewed') {
      this.#stillHeld(tracked, reply.expiresAt, reply.now);
      if (reply.block) tracked.hold.tokenLast = reply.block.tokenLast;
    } else if (reply.kind === 'lost') {
      this.#end(tracked, endOf(reply.evicted ? 'evicted' : 'lost', at, null, reply.evicted?.reason));
    } else if (reply.kind === 'released' && reply.held) {
      this.#end(tracked, endOf('released', reply.now));
    } else if (reply.kind === 'released') {
      // Before the expiry, the release may have been sent twice: the second one finds nothing held.
      this.#end(tracked, endOf(reply.now < expiresAt ? 'unknown' : 'lost', at));
    }
  }

  #evicted(eviction: Eviction): void {
    const { key, count } = eviction;
    if (count === 0) return;
    this.#evictions.delete(key);
    this.#evictions.set(key, eviction);
    forgetOldest(this.#evictions, EVICTED_KEYS_MAX, (oldest) => this.#evictions.delete(oldest));
    // The outcome is still unknown.
    if (count === null) return;
    for (const tracked of this.#tracked.of(key)) {
      if (!tracked.past && isMeant(tracked.hold, eviction)) {
        this.#end(tracked, evictedBy(eviction, Math.min(this.now, tracked.hold.expiresAt)));
      }
    }
    for (const past of this.#past.of(key)) {
      const isOpen = past.end.kind === 'unknown' || past.end.kind === 'evicted';
      if (isOpen && isMeant(past, eviction)) this.#improve(past, evictedBy(eviction, past.end.at));
    }
  }

  /** A holder that was seen has gone. */
  #vanished(hold: KnownHold & { readonly token: number; readonly acquiredAt: number }, end: End): void {
    const { key, token, acquiredAt } = hold;
    const tracked = this.#tracked.withToken(key, token);
    if (tracked) {
      this.#end(tracked, end);
      return;
    }
    for (const past of this.#past.of(key)) {
      if (past.token === token) {
        this.#improve(past, end);
        return;
      }
      // The release went through this service, but the grant did not.
      if (past.token === null && past.end.at >= acquiredAt && past.end.at <= end.at) {
        Object.assign(past, hold, { seen: past.seen });
        return;
      }
    }
    const eviction = end.kind === 'unknown' ? this.#evictions.get(key) : undefined;
    this.#record(hold, eviction && isMeant(hold, eviction) ? evictedBy(eviction, end.at) : end);
  }

  #releasedUnknown(key: string, at: number): void {
    const nothing = { token: null, owner: null, permits: null, capacity: null, acquiredAt: null };
    const hold = { key, ...nothing, tokenLast: 0, expiresAt: at, waitedMs: null, dueMs: 0 };
    this.#record({ ...hold, seen: 'requests' }, endOf('released', at));
  }

  #stillHeld(tracked: TrackedHold, expiresAt: number, now: number): void {
    const { past, hold } = tracked;
    if (past && (past.end.kind === 'expired' || past.end.kind === 'unknown')) {
      // The earlier finding was wrong: the hold was renewed elsewhere.
      this.#past.delete(past);
      this.#count(hold.key, past.end.kind, -1);
      tracked.past = null;
    }
    hold.expiresAt = expiresAt;
    hold.dueMs = monotonicMs() + expiresAt - now;
  }

  #end(tracked: TrackedHold, end: End): void {
    if (tracked.past) this.#improve(tracked.past, end);
    else tracked.past = this.#record(tracked.hold, end);
    // No later finding is more certain.
    if (tracked.past.end.kind === 'released') this.#tracked.delete(tracked);
  }

  #record(hold: KnownHold, end: End): PastHold {
    const nowMs = monotonicMs();
    const tally = this.#tallies.of(hold.key, nowMs);
    tally.counts[end.kind] += 1;
    if (hold.acquiredAt !== null) tally.held(Math.max(0, end.at - hold.acquiredAt));
    return this.#past.add(hold, end, nowMs);
  }

  #improve(past: PastHold, end: End): void {
    if (!isBetter(end, past.end)) return;
    this.#count(past.key, past.end.kind, -1);
    this.#count(past.key, end.kind);
    past.end = { ...end, reason: end.reason ?? past.end.reason };
  }

  #waited(key: string, what: Count, waitedMs: number): void {
    const tally = this.#tallies.of(key, monotonicMs());
    tally.counts[what] += 1;
    tally.waited(waitedMs);
  }

  #count(key: string, what: Count, by = 1): void {
    this.#tallies.of(key, monotonicMs()).counts[what] += by;
  }

  #sweep(): void {
    const nowMs = monotonicMs();
    this.#sweptMs = nowMs;
    this.#past.deleteBefore(nowMs - this.limits.historyMs);
    for (const tracked of this.#tracked.all()) {
      const { past, hold } = tracked;
      if (past && !this.#past.has(past)) this.#tracked.delete(tracked);
      if (!past && hold.dueMs + SWEEP_MS <= nowMs) this.#end(tracked, endOf('expired', hold.expiresAt));
    }
  }
}

function endOf(kind: EndKind, at: number, by: string | null = null, reason: string | null = null): End {
  return { kind, at, by, reason };
}

function evictedBy({ principal, reason }: Eviction, at: number): End {
  return endOf('evicted', at, principal, reason);
}

/** Whether the eviction ends this hold, decided as in the store: an exclusive hold has every token of its blocks. */
function isMeant({ token, tokenLast }: KnownHold, { fromToken, upToToken }: Eviction): boolean {
  return token !== null && token <= upToToken && tokenLast >= fromToken;
}

function seenHold(key: string, holder: Holder): KnownHold & { token: number; acquiredAt: number } {
  const { owner, permits, capacity, token, acquiredAt, expiresAt } = holder;
  const tokenLast = permits === capacity ? Number.MAX_SAFE_INTEGER : token;
  const what = { key, owner, permits, capacity, token, tokenLast, acquiredAt, expiresAt };
  return { ...what, waitedMs: null, seen: 'store', dueMs: 0 };
}
