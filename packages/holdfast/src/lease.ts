/** What a user holds in hand: a turn, with a signal that aborts when it is lost. */
import type { Duration, Lease, LeaseGroup, LeaseState, Metadata } from './api.js';
import { durationMs, TTL_MS_MAX, TTL_MS_MIN } from './arguments.js';
import { handoffText } from './engine/handoff-text.js';
import type { Turn } from './engine/turn.js';
import { LeaseLostError } from './protocol/errors.js';
import { runWork } from './work-context.js';

export class HeldLease implements Lease {
  readonly #turn: Turn;
  #controller: AbortController | null = null;

  constructor(turn: Turn) {
    this.#turn = turn;
  }

  /** Not a property of leases: from a turn one gets to the id of its hold, which is a capability. */
  static turnsOf(lease: Held): Turn[] {
    const turns: Turn[] = [];
    for (const part of partsOf(lease)) if (part instanceof HeldLease) turns.push(part.#turn);
    return turns;
  }

  get key(): string {
    return this.#turn.request.name;
  }

  get token(): number {
    return this.#turn.token;
  }

  get owner(): string {
    return this.#turn.request.owner;
  }

  get metadata(): Metadata | undefined {
    return readMetadata(this.#turn.request.metadata);
  }

  get acquiredAt(): Date {
    return new Date(this.#turn.acquiredAt);
  }

  get expiresAt(): Date {
    return new Date(this.#turn.hold.expiresAt);
  }

  /** Made when first asked for: most leases never are. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      const turn = this.#turn;
      const controller = new AbortController();
      const onLost = (): void => controller.abort(turn.overError());
      if (turn.state === 'lost') onLost();
      else turn.onLost = onLost;
      this.#controller = controller;
    }
    return this.#controller.signal;
  }

  get state(): LeaseState {
    return this.#turn.state;
  }

  get held(): boolean {
    return this.#turn.held;
  }

  get remainingMs(): number {
    return this.held ? this.#turn.hold.remainingMs : 0;
  }

  assertHeld(): void {
    if (!this.#turn.held) throw this.#turn.overError();
  }

  async renew(ttl?: Duration): Promise<void> {
    const ttlMs =
      ttl === undefined ? this.#turn.request.ttlMs : durationMs(ttl, 'ttl', TTL_MS_MIN, TTL_MS_MAX);
    this.assertHeld();
    await this.#turn.renew(ttlMs);
  }

  release(): Promise<void> {
    return this.#turn.release();
  }

  async handoff(): Promise<string> {
    const turn = this.#turn;
    await turn.handOff();
    return handoffText({
      id: turn.hold.id,
      request: turn.request,
      token: turn.token,
      acquiredAt: turn.acquiredAt,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await releaseQuietly(this);
  }
}

/** Held while all of its leases are. */
export class HeldGroup implements LeaseGroup {
  readonly leases: readonly Lease[];
  #controller: AbortController | null = null;

  constructor(leases: readonly Lease[]) {
    this.leases = leases;
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      const controller = new AbortController();
      for (const { signal } of this.leases) {
        const onLost = (): void => controller.abort(signal.reason);
        if (signal.aborted) onLost();
        else signal.addEventListener('abort', onLost, { once: true });
      }
      this.#controller = controller;
    }
    return this.#controller.signal;
  }

  get held(): boolean {
    return this.leases.every(({ held }) => held);
  }

  assertHeld(): void {
    for (const lease of this.leases) lease.assertHeld();
  }

  /** All are released, whatever becomes of one of them; then the first failure is told. */
  async release(): Promise<void> {
    const outcomes = await Promise.allSettled(this.leases.map((lease) => lease.release()));
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await releaseQuietly(this);
  }
}

type Held = Lease | LeaseGroup;

/** Work under a lease. Work that ends after the lease was lost has failed, whatever it returned (P10). */
export async function runUnder<L extends Held, T>(lease: L, work: (lease: L) => Promise<T> | T): Promise<T> {
  try {
    const result = await runWork(HeldLease.turnsOf(lease), () => work(lease));
    for (const part of partsOf(lease)) {
      if (!part.held && part.state === 'lost') throw lateError(part, result);
    }
    return result;
  } finally {
    await releaseQuietly(lease);
  }
}

function partsOf(lease: Held): readonly Lease[] {
  return 'leases' in lease ? lease.leases : [lease];
}

function lateError(lease: Lease, result: unknown): LeaseLostError {
  const message = `The work under "${lease.key}" ended after its lease (token ${lease.token}) was lost: others may have run beside it.`;
  return new LeaseLostError(message, { key: lease.key, result, cause: lease.signal.reason });
}

/** A failed release changes neither the work's result nor its error (P4): it goes on in the background. */
async function releaseQuietly(lease: Held): Promise<void> {
  await lease.release().then(undefined, () => undefined);
}

export function readMetadata(text: string | null): Metadata | undefined {
  return text === null ? undefined : (JSON.parse(text) as Metadata);
}
