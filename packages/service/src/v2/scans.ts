/**
 * Going through many keys, for those who list or begin to watch. A client has one scan at a time, and there are four in
 * all; clients take turns. So whoever asks for many lists at once gets them one after the other, and slows down others by
 * one scan, not by all of them.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { clientOf } from '../http/client.js';
import { Problem } from '../http/problem.js';

const RUNNING_MAX = 4;
/** Of one client. More are refused. */
const WAITING_MAX = 100;

type Begin = () => void;

export class Scans {
  /** Clients in turn: the next one first. */
  readonly #waiting = new Map<string, Begin[]>();
  readonly #running = new Set<string>();

  /** Rejects with a `Problem` when this client has too many waiting, or is gone; else as `scan` does. */
  async run<T>(request: FastifyRequest, { raw }: FastifyReply, scan: () => Promise<T>): Promise<T> {
    const client = clientOf(request);
    const own = this.#waiting.get(client) ?? [];
    if (own.length >= WAITING_MAX) {
      throw new Problem(
        'rate-limited',
        `${WAITING_MAX} lists of yours are waiting already: read those first.`,
        {
          headers: { 'retry-after': '1' },
        },
      );
    }
    await new Promise<void>((resolve) => {
      own.push(resolve);
      this.#waiting.set(client, own);
      this.#begin();
    });
    try {
      if (raw.destroyed) throw new Problem('client-gone', 'The connection ended before there was an answer.');
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
      // Behind the others from now on.
      this.#waiting.delete(client);
      if (own.length > 0) this.#waiting.set(client, own);
      if (!begin) continue;
      this.#running.add(client);
      begin();
    }
  }
}
