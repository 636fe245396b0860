/**
 * Queue of scans through many keys, for lists and new watchers. Four run at a time, one per client, and clients take turns:
 * a client that requests many lists at once slows others down by one scan, not by all.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { clientOf } from '../http/addresses.js';
import { Problem } from '../http/problem.js';

const RUNNING_MAX = 4;
/** The most waiting scans per client. More are refused. */
const WAITING_MAX = 100;

type Begin = () => void;

export class ScanQueue {
  /** Waiting scans per client; the next client first. */
  readonly #waiting = new Map<string, Begin[]>();
  readonly #running = new Set<string>();

  /** Rejects with a `Problem` when this client has too many waiting scans, or has left; otherwise settles like `scan`. */
  async run<T>(request: FastifyRequest, { raw }: FastifyReply, scan: () => Promise<T>): Promise<T> {
    const client = clientOf(request);
    const own = this.#waiting.get(client) ?? [];
    if (own.length >= WAITING_MAX) {
      throw new Problem(
        'rate-limited',
        `${WAITING_MAX} list requests of this client are waiting already: wait for those first.`,
      );
    }
    await new Promise<void>((resolve) => {
      own.push(resolve);
      this.#waiting.set(client, own);
      this.#begin();
    });
    try {
      if (raw.destroyed) throw new Problem('client-gone', 'The connection ended before the response.');
      return await scan();
    } finally {
      this.#running.delete(client);
      this.#begin();
    }
  }

  #begin(): void {
    for (const [client, own] of this.#waiting) {
      if (this.#running.size >= RUNNING_MAX) return;
      if (this.#running.has(client)) continue;
      const begin = own.shift();
      // The client goes to the end of the order.
      this.#waiting.delete(client);
      if (own.length > 0) this.#waiting.set(client, own);
      if (!begin) continue;
      this.#running.add(client);
      begin();
    }
  }
}
