/**
 * Elections: a lock whose holder leads. Each candidate waits in the key's queue; its lease is a term, and the lease's token
 * the number of the term.
 *
 * 1. A candidate waits without a limit. An unavailable store does not end its campaign.
 * 2. The body of the loop leads. When it ends, for any reason, the term is released before anything else.
 * 3. The next campaign begins behind the candidates that wait already.
 *
 * A term is never handed over within the process: each has a hold of its own, so that other processes see its token.
 */
import type { Election, ElectOptions, KeyInfo, Leader, Lease, LockEventName } from '../api.js';
import { checkSignal, requestOf } from '../arguments.js';
import { endable } from '../lease/endable.js';
import { type HeldLease, leaseWith, releaseQuietly } from '../lease/lease.js';
import type { LeaseRequest } from '../lease/lease-request.js';
import type { Leases } from '../lease/leases.js';
import { Pause } from '../lease/pause.js';
import { durationMs } from '../protocol/durations.js';
import { LeaseLostError, StoreError } from '../protocol/errors.js';
import { checkOptionNames } from '../protocol/option-names.js';
import { ALONE } from '../queue/request.js';
import type { Context } from './single.js';

/** The pause after the store refused a claim for good. It doubles with every refusal. */
const REFUSED_MS = 1_000;
const REFUSED_MS_MAX = 30_000;
const OBSERVE_MS = 500;
/** Events of this process that show a change of the leader before the next read. */
const OWN_EVENTS: readonly LockEventName[] = ['acquired', 'lost'];

type Inspect = () => Promise<KeyInfo | null>;

/** `inspect`: reads the key. */
export function elect(
  { leases, defaults }: Context,
  key: string,
  options: ElectOptions | undefined,
  inspect: Inspect,
): Election {
  const given = checkOptionNames(options ?? {}, ['ttl', 'metadata', 'owner', 'signal']);
  const asked = requestOf(key, given, ALONE, defaults, Number.POSITIVE_INFINITY);
  const request = { ...asked, ownHold: true };
  return {
    [Symbol.asyncIterator]: () =>
      endable(
        leases,
        () => request,
        (ending) => terms(leases, request, ending),
      ),
    leader: async () => leaderOf(await inspect()),
    observe(observing) {
      const { every = OBSERVE_MS, signal } = checkOptionNames(observing ?? {}, ['every', 'signal']);
      checkSignal(signal);
      const everyMs = durationMs(every, 'every', 10, 3_600_000);
      return endable(
        leases,
        () => ({ signal }),
        (ending) => changes(leases, request.name, inspect, everyMs, ending),
      );
    },
  };
}

/** `ending` ends a campaign, but not a term. */
async function* terms(leases: Leases, request: LeaseRequest, ending: AbortSignal): AsyncGenerator<Lease> {
  leases.checkOpen();
  for (;;) {
    const lease = await campaign(leases, { ...request, signal: ending });
    if (!lease) return;
    const term = new Term(leases, lease, request.signal);
    try {
      yield term.lease;
    } finally {
      term.end();
      await releaseQuietly(lease);
    }
  }
}

/** Null when the election is over: its signal aborted, or the locks were closed. */
async function campaign(leases: Leases, request: LeaseRequest): Promise<HeldLease | null> {
  const { client } = leases;
  for (let refusals = 0; ; refusals++) {
    if (leases.isClosed || request.signal?.aborted) return null;
    const outcome = await leases.acquire(request);
    if (outcome.kind === 'granted') return outcome.grant;
    if (outcome.kind !== 'failed' || leases.isClosed) return null;
    // A store that refuses before its first answer is set up wrongly: tell the caller.
    if (!(outcome.error instanceof StoreError) || client.storeAheadMs === 0) throw outcome.error;
    const mostMs = Math.min(REFUSED_MS * 2 ** refusals, REFUSED_MS_MAX);
    await new Pause(leases, mostMs * (0.5 + client.clock.random() / 2), request.signal).over;
  }
}

/**
 * A term. Its signal also aborts with the election's, and when the locks begin to close. The term ends only with its body,
 * because stopping may take time.
 */
class Term {
  readonly lease: Lease;
  readonly #leases: Leases;
  readonly #held: HeldLease;
  readonly #signals: readonly AbortSignal[];
  readonly #stopping = new AbortController();

  constructor(leases: Leases, held: HeldLease, signal: AbortSignal | undefined) {
    this.#leases = leases;
    this.#held = held;
    this.#signals = [held.signal, ...(signal ? [signal] : []), leases.closing];
    for (const each of this.#signals) leases.aborts.add(each, this);
    if (this.#signals.some(({ aborted }) => aborted)) this.onAbort();
    this.lease = leaseWith(held, { signal: this.#stopping.signal });
  }

  onAbort(): void {
    const aborted = this.#signals.find((signal) => signal.aborted);
    this.#stopping.abort(aborted === this.#leases.closing ? closingError(this.#held) : aborted?.reason);
  }

  end(): void {
    for (const each of this.#signals) this.#leases.aborts.remove(each, this);
  }
}

function closingError({ key, token }: Lease): LeaseLostError {
  const message = `The locks are being closed: the term ${token} of "${key}" ends with the work of its leader, or when the drain is over.`;
  return new LeaseLostError(message, { key, reason: 'closed' });
}

/** Reads the key repeatedly, and yields each change. A term that begins and ends between two reads is not seen. */
async function* changes(
  leases: Leases,
  name: string,
  inspect: Inspect,
  everyMs: number,
  ending: AbortSignal,
): AsyncGenerator<Leader | null> {
  let known: Leader | null | undefined;
  const own = new OwnEvents(leases, name);
  try {
    while (!ending.aborted) {
      own.isDue = false;
      const leader = await read(leases, inspect, known === undefined);
      if (leases.isClosed) return;
      if (leader !== undefined && (known === undefined || leader?.token !== known?.token)) {
        known = leader;
        yield leader;
      }
      // The caller closed the locks inside its loop: nothing would end the pause early.
      if (own.isDue || leases.isClosed) continue;
      const pause = new Pause(leases, everyMs, ending);
      own.onDue = () => pause.end();
      await pause.over;
      own.onDue = null;
    }
  } finally {
    own.end();
  }
}

/** Undefined when the store does not answer, except for the first read, which rejects. */
async function read(leases: Leases, inspect: Inspect, isFirst: boolean): Promise<Leader | null | undefined> {
  try {
    return leaderOf(await inspect());
  } catch (error) {
    const goesOn = leases.isClosed || error instanceof StoreError;
    if (!goesOn || isFirst) throw error;
    return undefined;
  }
}

function leaderOf(info: KeyInfo | null): Leader | null {
  const holder = info?.holders.find(({ resting }) => !resting);
  if (!holder) return null;
  const { owner, metadata, token, acquiredAt } = holder;
  return { owner, metadata, token, since: acquiredAt };
}

/** Events of this process that make the next read due at once. */
class OwnEvents {
  isDue = false;
  onDue: (() => void) | null = null;
  readonly #stops: readonly (() => void)[];

  constructor({ events }: Leases, name: string) {
    const listener = ({ key }: { readonly key: string }): void => {
      if (key !== name) return;
      this.isDue = true;
      this.onDue?.();
    };
    this.#stops = OWN_EVENTS.map((event) => events.on(event, listener));
  }

  end(): void {
    for (const stop of this.#stops) stop();
  }
}
