/** One call of `getOrCreate`. It waits in a flight for the value, or leads the flight with its own functions. */
import type { Lease } from '../api.js';
import type { LeaseRequest } from '../lease/lease-request.js';
import type { Leases } from '../lease/leases.js';
import { captureContext } from '../lease/work-context.js';

/** The functions of a caller. */
export interface Functions {
  readonly get: () => unknown;
  readonly create: (lease: Lease) => unknown;
}

interface Joined {
  onWaited(caller: Caller): void;
  leave(caller: Caller, reason: unknown): void;
}

/** A task of the timer queue, due when its wait ends. */
export class Caller {
  index = -1;
  readonly request: LeaseRequest;
  readonly functions: Functions;
  readonly value: Promise<unknown>;
  /** Runs code as if it were called by this caller, with its `AsyncLocalStorage`. */
  readonly runInContext = captureContext();
  readonly #leases: Leases;
  readonly #untilMs: number;
  #flight: Joined | null = null;
  #resolve: (value: unknown) => void = () => undefined;
  #reject: (reason: unknown) => void = () => undefined;

  constructor(leases: Leases, request: LeaseRequest, functions: Functions) {
    this.#leases = leases;
    this.request = request;
    this.functions = functions;
    this.#untilMs = leases.client.clock.monotonicMs() + request.waitMs;
    this.value = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    if (request.signal) leases.aborts.add(request.signal, this);
  }

  /** `isBounded`: whether the caller's `wait` counts now. */
  joins(flight: Joined, isBounded: boolean): void {
    this.#flight = flight;
    this.bound(isBounded);
  }

  bound(isBounded: boolean): void {
    const { timers } = this.#leases.client;
    if (isBounded) timers.schedule(this, this.#untilMs, true);
    else timers.cancel(this);
  }

  onDue(): void {
    this.#flight?.onWaited(this);
  }

  onAbort(): void {
    this.#flight?.leave(this, this.request.signal?.reason);
  }

  resolve(value: unknown): void {
    this.#end();
    this.#resolve(value);
  }

  reject(reason: unknown): void {
    this.#end();
    this.#reject(reason);
  }

  #end(): void {
    const { signal } = this.request;
    this.bound(false);
    this.#flight = null;
    if (signal) this.#leases.aborts.remove(signal, this);
  }
}
