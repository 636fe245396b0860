/** Once-only work: callers of one `locks` share one flight per key, with its result or its error. See flight.ts. */
import type { GetOrCreateOptions } from '../api.js';
import { requestOf } from '../arguments.js';
import { checkNotInFlight, checkNotNested } from '../lease/work-context.js';
import { InvalidArgumentError } from '../protocol/errors.js';
import { show } from '../protocol/names.js';
import { checkOptionNames } from '../protocol/option-names.js';
import { ALONE } from '../queue/request.js';
import { Flight } from './flight.js';
import { Caller } from './flight-caller.js';
import type { Context } from './single.js';

const OPTION_NAMES = ['get', 'create', 'ttl', 'wait', 'signal', 'owner', 'metadata', 'maxHold'];

/** The flights of one `locks`, by key. */
export class Flights {
  readonly #context: Context;
  readonly #byKey = new Map<string, Flight>();

  constructor(context: Context) {
    this.#context = context;
  }

  async getOrCreate<T>(key: string, options: GetOrCreateOptions<T>): Promise<T> {
    const { leases, defaults } = this.#context;
    const { get, create, ...lockOptions } = checkOptionNames(options, OPTION_NAMES);
    checkFunction(get, 'get');
    checkFunction(create, 'create');
    const request = requestOf(key, lockOptions, ALONE, defaults, defaults.waitMs);
    leases.checkOpen();
    request.signal?.throwIfAborted();
    // Checked before joining: in the flight, this error would fail all callers.
    checkNotNested(leases.client.store, request);
    checkNotInFlight(leases.client.store, request);
    const caller = new Caller(leases, request, { get, create });
    this.#join(caller);
    // The cast is safe: callers that name the same key ask for the same value.
    return caller.value as Promise<T>;
  }

  goOn(callers: readonly Caller[]): void {
    for (const caller of callers) this.#join(caller);
  }

  onClosed(flight: Flight): void {
    if (this.#byKey.get(flight.key) === flight) this.#byKey.delete(flight.key);
  }

  #join(caller: Caller): void {
    const { key, waitMs } = caller.request;
    const known = this.#byKey.get(key);
    // A caller without a wait does not join a flight that looks: it would fail although the value may be there.
    if (known && (waitMs > 0 || !known.isLooking)) {
      known.join(caller);
      return;
    }
    const flight = new Flight(this.#context, caller, this);
    if (!known) this.#byKey.set(key, flight);
    flight.start();
  }
}

function checkFunction(value: unknown, name: string): void {
  if (typeof value === 'function') return;
  throw new InvalidArgumentError(
    `${name} is ${show(value)}, but has to be a function: pass { get, create }, one that looks for the value and one that makes it.`,
  );
}
