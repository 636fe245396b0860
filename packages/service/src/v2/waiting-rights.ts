/**
 * The right to wait: an API key may be revoked, or a JWT expire, while a request waits. All waiting requests are checked every
 * second, by one timer. Streams check theirs with their heartbeat.
 */
import type { FastifyRequest } from 'fastify';
import { after, type Cancel } from '../clock.js';
import { Problem } from '../http/problem.js';
import { whenOver } from '../http/request-log.js';
import { namespaceOfKey } from './names.js';

const RIGHTS_CHECK_MS = 1_000;

export class WaitingRights {
  readonly #checks = new Set<() => void>();
  #cancel: Cancel = () => undefined;

  /** Aborts when the connection ends before the response was sent, or when the principal may no longer lock this key. */
  signalOf(request: FastifyRequest, key: string): AbortSignal {
    const ending = new AbortController();
    const check = (): void => {
      if (lostRight(request, key)) ending.abort();
    };
    this.#add(check);
    whenOver(request, (isSent) => {
      this.#remove(check);
      if (!isSent) ending.abort();
    });
    return ending.signal;
  }

  #add(check: () => void): void {
    this.#checks.add(check);
    if (this.#checks.size === 1) this.#checkLater();
  }

  #remove(check: () => void): void {
    this.#checks.delete(check);
    if (this.#checks.size === 0) this.#cancel();
  }

  #checkLater(): void {
    this.#cancel = after(RIGHTS_CHECK_MS, () => {
      for (const check of this.#checks) check();
      if (this.#checks.size > 0) this.#checkLater();
    });
  }
}

/** Null while the principal may lock this key. */
export function lostRight(request: FastifyRequest, key: string): Problem | null {
  if (request.may('lock', namespaceOfKey(key))) return null;
  return new Problem('forbidden', `${request.principal.id} may no longer lock in this namespace.`, { key });
}
