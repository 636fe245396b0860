/**
 * The lock: one pure function from a key's state, a command and the store's time to the next state and a reply.
 * Mutexes, semaphores, read-write locks and fair queues are all this function.
 *
 * Every command may arrive twice, late, or after its caller gave up; applied again it changes nothing more, except a
 * renewal, which may extend again and reserve another block.
 */
import type { Claim, Command, Evict, Release, Renew, Reply, Wake } from './commands.js';
import {
  EVICTION_MS,
  EVICTIONS_MAX,
  HOLDERS_SHOWN,
  QUEUE_MAX,
  TOKEN_BLOCK,
  WAITER_LIFE_MS,
  WAITER_REFRESH_MS,
} from './constants.js';
import { type Draft, finish, markEnded, markOf, openDraft, rise, sweep } from './draft.js';
import {
  EMPTY_STATE,
  type Holder,
  type HoldId,
  missedItsWindow,
  type Rest,
  type State,
  sameHold,
} from './state.js';
import { holderView } from './view.js';
import { callNext, freeInMs, hasRoom, isOverdue } from './waiters.js';

/** The result of `decide`: the new state, the reply, and the wake-ups to send. */
export interface Decision {
  readonly state: State;
  /** Whether there is anything to store. */
  readonly changed: boolean;
  readonly reply: Reply;
  /** Wake-ups to send once the state is stored. */
  readonly wakes: readonly Wake[];
}

/** A reply before its decision number and `othersWait` are known: those are filled in last, in place. */
type Writable<R> = R extends Reply ? { -readonly [K in keyof R]: R[K] } : never;
type Answer = Writable<Reply>;

/**
 * `now` is the store's time. If that is an estimate, `now` is the latest that it may be, and `doubtMs` is how much earlier
 * it may be. Times that are written count from the latest time; a lease is over only by the earliest, so that nobody takes
 * a lock that another may still hold.
 */
export function decide(state: State | null, command: Command, now: number, doubtMs = 0): Decision {
  const draft = openDraft(state ?? EMPTY_STATE, now - doubtMs);
  if (state) sweep(draft, now);
  if (draft.waiters.length > 0) callNext(draft, now);
  const answer = answerTo(draft, command, now);
  if (draft.waiters.length > 0) callNext(draft, now);
  if (draft.rests.length > 0) tellNewHead(draft);
  const next = finish(draft, now);
  answer.decision = next.decision;
  const { changed, waiters } = draft;
  answer.othersWait = waiters.length > 0 && doOthersWait(draft, command);
  if (doubtMs > 0) answer.doubtMs = doubtMs;
  return { state: next, changed, reply: answer, wakes: waiters.length > 0 ? wakesOf(draft) : draft.wakes };
}

function doOthersWait({ waiters }: Draft, command: Command): boolean {
  const own = command.kind === 'evict' ? null : command.hold.process;
  return waiters.some(({ hold }) => hold.process !== own);
}

/** A waiter that comes to the head during a cool-down has to learn how long it lasts: nothing else will wake it. */
function tellNewHead(draft: Draft): void {
  const [head] = draft.waiters;
  const [before] = draft.from.waiters;
  if (head && before && !sameHold(head.hold, before.hold)) draft.called = [...draft.called, head];
}

function answerTo(draft: Draft, command: Command, now: number): Answer {
  switch (command.kind) {
    case 'claim':
      return claim(draft, command, now);
    case 'renew':
      return renew(draft, command, now);
    case 'release':
      return release(draft, command, now);
    case 'evict':
      return evict(draft, command, now);
  }
}

function claim(draft: Draft, command: Claim, now: number): Answer {
  const { hold } = command;
  const held = draft.holders.find((holder) => sameHold(holder.hold, hold));
  if (held) return grantOf(held, now);
  const mark = draft.ended.length > 0 ? markOf(draft.ended, hold.process) : null;
  if (mark && mark.number >= hold.number) {
    return { kind: 'withdrawn', now, decision: 0, othersWait: false };
  }
  if (draft.waiters.length > 0) endEarlierWaiters(draft, command, now);
  const place = draft.waiters.findIndex((waiter) => sameHold(waiter.hold, hold));
  const ahead = place === -1 ? draft.waiters.length : place;
  const isFree = draft.holders.length + draft.rests.length + draft.waiters.length === 0;
  if (isFree || hasRoom(draft, ahead, command)) return grant(draft, command, place, now);
  const position = standInLine(draft, command, place, now);
  if (command.queue) tellHolders(draft, command);
  return {
    kind: 'busy',
    holders: [...draft.holders, ...draft.rests].slice(0, HOLDERS_SHOWN).map(holderView),
    freeInMs: freeInMs(draft, ahead),
    position,
    now,
    decision: 0,
    othersWait: false,
  };
}

/** A process has one contender per key: its later claim ends its earlier place in the queue, and others may be next. */
function endEarlierWaiters(draft: Draft, { hold }: Claim, now: number): void {
  const { waiters } = draft;
  for (const waiter of waiters) {
    if (waiter.hold.process === hold.process && waiter.hold.number < hold.number)
      markEnded(draft, waiter.hold, now);
  }
  if (draft.waiters !== waiters) callNext(draft, now);
}

function grant(draft: Draft, command: Claim, place: number, now: number): Answer {
  const { hold, owner, permits, capacity, inbox, metadata, ttlMs } = command;
  const block = reserve(draft, permits === capacity ? TOKEN_BLOCK : 1, now);
  const holder: Holder = {
    hold,
    owner,
    permits,
    capacity,
    token: block.token,
    inbox,
    acquiredAt: now,
    expiresAt: now + ttlMs,
    metadata,
  };
  draft.holders = draft.holders.length === 0 ? [holder] : [...draft.holders, holder];
  if (place !== -1) draft.waiters = draft.waiters.filter((_, index) => index !== place);
  return grantOf(holder, now);
}

function grantOf({ token, permits, capacity, acquiredAt, expiresAt }: Holder, now: number): Answer {
  const tokenLast = permits === capacity ? token + TOKEN_BLOCK - 1 : token;
  return { kind: 'granted', token, tokenLast, acquiredAt, expiresAt, now, decision: 0, othersWait: false };
}

function reserve(draft: Draft, count: number, now: number): { token: number; tokenLast: number } {
  const token = rise(draft.token, now);
  const tokenLast = token + (count - 1);
  if (!Number.isSafeInteger(tokenLast)) throw new RangeError('The tokens of this key are used up.');
  draft.token = tokenLast;
  draft.changed = true;
  return { token, tokenLast };
}

/** Keeps or takes a place in the queue. Returns the position, or null when there is none. */
function standInLine(draft: Draft, command: Claim, place: number, now: number): number | null {
  const expiresAt = now + WAITER_LIFE_MS;
  const waiter = draft.waiters[place];
  if (waiter) {
    const returned = missedItsWindow(waiter, draft.earliest);
    if (returned || expiresAt - waiter.expiresAt >= WAITER_REFRESH_MS) {
      const wokenAt = returned ? null : waiter.wokenAt;
      draft.waiters = draft.waiters.with(place, { ...waiter, expiresAt, wokenAt });
      draft.changed = true;
    }
    return place;
  }
  if (!command.queue || draft.waiters.length >= QUEUE_MAX) return null;
  const { hold, owner, permits, capacity, inbox } = command;
  const last = { hold, owner, permits, capacity, inbox, since: now, expiresAt, wokenAt: null };
  draft.waiters = [...draft.waiters, last];
  draft.changed = true;
  return draft.waiters.length - 1;
}

/** Only exclusive holds are handed over within a process, so only their holders need to know that others wait. */
function tellHolders(draft: Draft, { hold }: Claim): void {
  for (const holder of draft.holders) {
    if (holder.permits !== holder.capacity || holder.hold.process === hold.process) continue;
    if (holder.inbox !== null) draft.wakes = [...draft.wakes, { inbox: holder.inbox, why: 'waiting' }];
  }
}

function renew(draft: Draft, command: Renew, now: number): Answer {
  const at = draft.holders.findIndex((holder) => sameHold(holder.hold, command.hold));
  const holder = draft.holders[at];
  if (!holder) return lost(draft, command.hold, now);
  const { added } = command;
  let expiresAt = holder.expiresAt;
  if (!added) expiresAt = Math.max(expiresAt, now + command.ttlMs);
  else if (added.expiresAt === expiresAt) expiresAt += added.ms;
  if (expiresAt !== holder.expiresAt) {
    draft.holders = draft.holders.with(at, { ...holder, expiresAt });
    draft.changed = true;
  }
  const wantsBlock = command.block && holder.permits === holder.capacity;
  const block = wantsBlock ? reserve(draft, TOKEN_BLOCK, now) : null;
  return { kind: 'renewed', expiresAt, block, now, decision: 0, othersWait: false };
}

function lost({ evictions }: Draft, hold: HoldId, now: number): Answer {
  const answer: Answer = { kind: 'lost', now, decision: 0, othersWait: false };
  const eviction = evictions.find((one) => sameHold(one, hold));
  return eviction ? { ...answer, evicted: { reason: eviction.reason } } : answer;
}

function release(draft: Draft, { hold, minHoldMs }: Release, now: number): Answer {
  const holder = draft.holders.find((other) => sameHold(other.hold, hold));
  // The holder's own hold id: that of the command would keep the command's whole text in memory.
  markEnded(draft, holder?.hold ?? hold, now);
  if (holder) leave(draft, holder, minHoldMs);
  return { kind: 'released', held: holder !== undefined, now, decision: 0, othersWait: false };
}

function leave(draft: Draft, holder: Holder, minHoldMs: number): void {
  draft.holders = draft.holders.filter((other) => other !== holder);
  draft.changed = true;
  const { owner, permits, capacity, token, acquiredAt } = holder;
  const expiresAt = acquiredAt + minHoldMs;
  if (minHoldMs === 0 || expiresAt <= draft.earliest) return;
  draft.rests = [...draft.rests, { owner, permits, capacity, token, acquiredAt, expiresAt }];
  const head = draft.waiters[0];
  if (head) draft.called = [...draft.called, head];
}

function evict(draft: Draft, { fromToken = 0, upToToken, reason = null }: Evict, now: number): Answer {
  // An exclusive hold is alone on its key: every token reserved since its grant is its own.
  const isNamed = ({ token, permits, capacity }: Holder | Rest): boolean =>
    token <= upToToken && (permits === capacity ? draft.token : token) >= fromToken;
  const gone = draft.holders.filter(isNamed);
  const rests = draft.rests.filter((rest) => !isNamed(rest));
  const count = gone.length + draft.rests.length - rests.length;
  const reply: Answer = { kind: 'evicted', count, now, decision: 0, othersWait: false };
  if (count === 0) return reply;
  draft.holders = draft.holders.filter((holder) => !isNamed(holder));
  draft.rests = rests;
  draft.changed = true;
  for (const { hold, inbox, expiresAt } of gone) {
    markEnded(draft, hold, now);
    const until = Math.min(expiresAt, now + EVICTION_MS);
    draft.evictions = [...draft.evictions.slice(1 - EVICTIONS_MAX), { ...hold, reason, until }];
    if (inbox !== null) draft.wakes = [...draft.wakes, { inbox, why: 'evicted' }];
  }
  return reply;
}

/** Wake-ups for waiters that were called now, and again for those that were called before and have not claimed yet. */
function wakesOf({ waiters, called, wakes, earliest }: Draft): readonly Wake[] {
  const named = waiters.filter((waiter) => called.includes(waiter) || isOverdue(waiter, earliest));
  const turns = named.flatMap(({ inbox }): Wake[] => (inbox === null ? [] : [{ inbox, why: 'turn' }]));
  return wakes.concat(turns);
}
