/**
 * One a key: the waiters of this process stand in order, and only the first contends at the store (F18, F19).
 * While the process itself holds and can hand over, nobody contends at all.
 */
import type { Busy, Granted, HolderView, Renewed, Why } from '../protocol/commands.js';
import { STAY_AWAY_MS, TOKEN_BLOCK } from '../protocol/constants.js';
import type { HoldfastError } from '../protocol/errors.js';
import type { HoldId } from '../protocol/state.js';
import type { HandedOff } from './adoption.js';
import type { Core } from './core.js';
import { canBeHandedOver, fitsNext, howToPass } from './handover.js';
import { Hold } from './hold.js';
import { areAlike, askTtlMs, isExclusive, type Request } from './request.js';
import { Ticket, type TicketKeeper } from './ticket.js';
import { TicketLine } from './ticket-line.js';
import type { Turn } from './turn.js';
import type { Moment } from './validity.js';
import { Contender } from './waiting.js';

const NO_HOLDS: readonly Hold[] = [];

export class Turnstile implements TicketKeeper {
  readonly core: Core;
  readonly key: string;
  readonly #tickets = new TicketLine();
  #holds: readonly Hold[] = NO_HOLDS;
  #contender: Contender | null = null;
  /** The hold that passes from turn to turn within this process. */
  #passing: Hold | null = null;
  /** Since when it passes; kept only where the store calls no waiters. */
  #passingSinceMs = 0;
  #awayUntilMs = 0;
  /** When an eviction was last heard of: it may have ended what a claim sent before got, though its answer is late. */
  #evictionMs = Number.NEGATIVE_INFINITY;

  constructor(core: Core, key: string) {
    this.core = core;
    this.key = key;
  }

  /** In order. */
  get tickets(): Iterable<Ticket> {
    return this.#tickets;
  }

  get holds(): Iterable<Hold> {
    return this.#holds;
  }

  enter(request: Request): Ticket {
    const ticket = new Ticket(this.core, request, this);
    this.#tickets.add(ticket);
    this.#advance();
    const holders = this.#knownHolders();
    if (holders) this.#answerBusy(ticket, holders);
    else this.#failOverdue(ticket);
    return ticket;
  }

  overdue(ticket: Ticket): void {
    this.#tickets.overdue += 1;
    const holders = this.#knownHolders() ?? ticket.seen;
    if (holders) this.#answerBusy(ticket, holders);
    else this.#failOverdue(ticket);
    if (!ticket.inLine) this.#advance();
  }

  gone(ticket: Ticket): void {
    this.#tickets.remove(ticket);
    this.#advance();
  }

  heardBusy(reply: Busy): void {
    for (const ticket of this.#tickets) this.#answerBusy(ticket, reply.holders);
    this.#advance();
  }

  heardNothing(cause: unknown): void {
    for (const ticket of this.#tickets) {
      ticket.noteFailure(cause);
      this.#failOverdue(ticket);
    }
    this.#advance();
  }

  /** The store cannot be asked now, and nothing was executed: those who do not wait are told so at once. */
  #failOverdue(ticket: Ticket): void {
    const refusal = this.#contender?.refusal;
    if (!refusal || !ticket.overdue || !ticket.inLine) return;
    this.#tickets.remove(ticket);
    ticket.fail(refusal);
  }

  /** Nobody here can be served, for this reason. */
  refused(error: HoldfastError): void {
    for (const ticket of this.#tickets) {
      this.#tickets.remove(ticket);
      ticket.settle({ kind: 'failed', error });
    }
    this.#advance();
  }

  /** A claim was granted: the first in line gets it. Nobody like it there any more, or too late (P15): given back. */
  admit(id: HoldId, claimed: Request, reply: Granted, sent: Moment): void {
    const ticket = this.#tickets.first;
    if (isExclusive(claimed)) this.#stopContending();
    if (!ticket || !areAlike(ticket.request, claimed)) {
      this.core.withdraw(this.key, id, claimed.ttlMs);
    } else {
      const hold = new Hold(this, id, ticket.request, reply, sent);
      this.#holds = this.#holds.length === 0 ? [hold] : [...this.#holds, hold];
      if (sent.monotonicMs <= this.#evictionMs) this.#suspect(hold);
      if (canBeHandedOver(ticket.request)) this.#startPassing(hold);
      if (hold.remainingMs > 0) this.#begin(hold, ticket, reply.acquiredAt, false);
      else hold.lose('it was granted too late');
    }
    this.#advance();
  }

  /** A turn ended: the hold passes to the next of this process, or goes back to the store. */
  leave(hold: Hold, handOver: boolean): Promise<void> {
    hold.turn = null;
    if (handOver && this.#passOn(hold, true)) return Promise.resolve();
    this.#end(hold);
    const released = this.core.release(hold);
    this.#advance();
    return released;
  }

  /** A hold that was renewed before passing on. */
  renewed(hold: Hold): void {
    if (hold.turn !== null || hold.ended || this.#passOn(hold, false)) return;
    this.#giveBack(hold);
    this.#advance();
  }

  lost(hold: Hold): void {
    this.#end(hold);
    this.#advance();
  }

  /** The passing hold is no longer what the next in line asked for. */
  setApart(): void {
    this.#advance();
  }

  /** Another process goes on with it. */
  handedOff(hold: Hold): void {
    hold.turn = null;
    this.#end(hold);
    this.#advance();
  }

  /** A turn that began in another process goes on here. */
  adopt({ id, request, token, acquiredAt }: HandedOff, reply: Renewed, sent: Moment): Turn {
    const granted: Granted = { ...reply, kind: 'granted', token, tokenLast: token, acquiredAt };
    const hold = new Hold(this, id, request, granted, sent);
    this.#holds = [...this.#holds, hold];
    hold.setApart();
    if (sent.monotonicMs <= this.#evictionMs) this.#suspect(hold);
    return hold.begin(acquiredAt);
  }

  hint(why: Why): void {
    if (why === 'turn') this.#contender?.hint();
    if (why === 'evicted') this.#evictionMs = this.core.clock.monotonicMs();
    for (const hold of this.#holds) {
      if (why === 'waiting') hold.noteOthers(true, this.core.clock.monotonicMs());
      if (why === 'evicted') this.#suspect(hold);
    }
    if (this.#passing?.turn === null) this.#advance();
  }

  #suspect(hold: Hold): void {
    hold.suspect = true;
    hold.renewal.demand(askTtlMs(hold.request));
  }

  #begin(hold: Hold, ticket: Ticket, acquiredAt: number, handedOver: boolean): void {
    this.#tickets.remove(ticket);
    const turn = hold.begin(acquiredAt);
    // Settled before anybody is told: a listener may abort the caller's signal.
    ticket.settle({ kind: 'granted', turn });
    this.core.events.emit('acquired', ticket.request, () => {
      const waitedMs = this.core.clock.monotonicMs() - ticket.sinceMs;
      return { token: turn.token, waitedMs, handedOver };
    });
  }

  #startPassing(hold: Hold): void {
    this.#passing = hold;
    if (!this.core.callsWaiters()) this.#passingSinceMs = this.core.clock.monotonicMs();
  }

  /** False when the hold has to go back to the store. */
  #passOn(hold: Hold, mayRenew: boolean): boolean {
    const next = this.#tickets.first;
    if (!next || hold !== this.#passing) return false;
    const passing = howToPass(hold, next.request, this.#passingSinceMs);
    if (passing === 'yield' && !this.core.callsWaiters()) {
      // Nothing else lets other processes have their turn.
      this.#awayUntilMs = this.core.clock.monotonicMs() + STAY_AWAY_MS;
    }
    if (passing === 'yield' || passing === 'release' || (passing === 'renew' && !mayRenew)) return false;
    if (passing === 'now') this.#begin(hold, next, this.core.storeNow(), true);
    const wantsRenewal = passing === 'renew' || hold.tokensLeft < TOKEN_BLOCK / 2;
    if (wantsRenewal && !hold.renewal.underWay) hold.renewal.demand(hold.request.ttlMs);
    return true;
  }

  #giveBack(hold: Hold): void {
    this.#end(hold);
    this.core.withdraw(this.key, hold.id, hold.request.ttlMs, hold.lifeMs);
  }

  #end(hold: Hold): void {
    hold.end();
    this.#holds = this.#holds.filter((other) => other !== hold);
    if (this.#passing === hold) this.#passing = null;
  }

  #stopContending(): void {
    this.#contender?.retire();
    this.#contender = null;
  }

  /** Brings the one who contends into line with who stands first now. */
  #advance(): void {
    const head = this.#tickets.first;
    if (this.#contender && !(head && this.#contender.serves(head.request))) this.#stopContending();
    const idle = this.#passing?.turn === null ? this.#passing : null;
    // It waits for its renewal, with nobody on it: not while others want it, or nobody here does.
    if (idle && (!head || idle.othersSinceMs !== null || !fitsNext(idle, head.request))) this.#giveBack(idle);
    if (!head) {
      if (this.#holds.length === 0) this.core.forget(this);
    } else if (!this.#contender) {
      if (this.#passing && fitsNext(this.#passing, head.request)) this.#answerOverdue(head);
      else this.#contend(head.request);
    }
  }

  #contend(request: Request): void {
    this.#contender = new Contender(this, request);
    this.#contender.start(this.#awayUntilMs);
  }

  /** Nobody contends, because this process holds the key itself: that is an answer for those who do not wait. */
  #answerOverdue(head: Ticket): void {
    const holders = this.#tickets.overdue > 0 ? this.#knownHolders() : null;
    if (!holders) return;
    for (const ticket of this.#tickets) if (ticket.overdue) this.#answerBusy(ticket, holders);
    if (this.#tickets.first !== head) this.#advance();
  }

  /** Who holds the key, while this process knows that somebody does. */
  #knownHolders(): readonly HolderView[] | null {
    if (this.#contender) return this.#contender.heard?.holders ?? null;
    const hold = this.#passing;
    if (!hold || hold.remainingMs === 0) return null;
    const { owner, permits, capacity, metadata } = hold.request;
    const { token, acquiredAt } = hold.turn ?? { token: 0, acquiredAt: this.core.storeNow() };
    const { expiresAt } = hold;
    return [{ owner, permits, capacity, metadata, token, acquiredAt, expiresAt, resting: false }];
  }

  #answerBusy(ticket: Ticket, holders: readonly HolderView[]): void {
    if (!ticket.inLine) return;
    if (ticket.overdue) {
      this.#tickets.remove(ticket);
      ticket.settle({ kind: 'busy', key: ticket.request.name, holders, heldHere: this.#holds.length > 0 });
      return;
    }
    ticket.seen = holders;
    if (ticket.contended) return;
    ticket.contended = true;
    const waitedMs = this.core.clock.monotonicMs() - ticket.sinceMs;
    const owners = holders.map(({ owner }) => owner);
    this.core.events.emit('contended', ticket.request, () => ({ holders: owners, waitedMs }));
  }
}
