/** Once-only work: callers of one `locks` share one flight per key, with its result or its error. */
import type { GetOrCreateOptions } from '../api.js';
import { checkOptions, requestOf } from '../arguments.js';
import { checkNotNested } from '../lease/work-context.js';
import { InvalidArgumentError } from '../protocol/errors.js';
import { show } from '../protocol/names.js';
import { ALONE } from '../queue/request.js';
import { Flight } from './flight.js';
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
    const { get, create, ...lockOptions } = checkOptions(options, OPTION_NAMES);
    checkFunction(get, 'get');
    checkFunction(create, 'create');
    const request = requestOf(key, lockOptions, ALONE, defaults, defaults.waitMs);
    leases.checkOpen();
    request.signal?.throwIfAborted();
    // Before it joins: a flight that failed with this would fail for everybody.
    checkNotNested(leases.client.store, request);
    let flight = this.#byKey.get(request.key);
    if (!flight) {
      const started = new Flight(this.#context, request, { get, create }, () =>
        this.#end(request.key, started),
      );
      this.#byKey.set(request.key, started);
      started.start();
      flight = started;
    }
    // Callers that name the same key ask for the same value.
    return flight.join(request) as Promise<T>;
  }

  #end(key: string, flight: Flight): void {
    if (this.#byKey.get(key) === flight) this.#byKey.delete(key);
  }
}

function checkFunction(value: unknown, name: string): void {
  if (typeof value === 'function') return;
  throw new InvalidArgumentError(
    `${name} is ${show(value)}, but has to be a function: pass { get, create }, one that looks for the value and one that makes it.`,
  );
}
