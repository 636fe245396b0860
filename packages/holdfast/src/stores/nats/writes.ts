/**
 * Writes, with their answers on one subscription of their own. The client's `request` makes an error with its stack for
 * every request, also for one that is answered, and sets a timer: that costs more than all the rest of a lock.
 *
 * Only while all is well. The first write goes by `request`, and so does every one from the moment that an answer is late
 * or missing until one came back that way: `request` is told by the client why there is none. A write may be said twice
 * by that, which its expected revision makes harmless.
 */
import { randomUUID } from 'node:crypto';
import { type Clock, systemClock } from '../../clock.js';
import {
  ANSWER_MS_MAX,
  type ApiAnswer,
  answered,
  answerIn,
  type NatsConnection,
  type NatsSubscription,
} from './connection.js';

/** An answer that is out for longer may never come. */
const LATE_MS = 200;

interface Awaited {
  readonly sentMs: number;
  readonly subject: string;
  readonly resolve: (data: Uint8Array) => void;
  readonly reject: (error: Error) => void;
}

export class Writes {
  readonly #connection: NatsConnection;
  readonly #clock: Clock;
  /** By the last part of the subject that the answer comes to, in the order of sending. */
  readonly #awaited = new Map<string, Awaited>();
  #inbox = '';
  #subscription: NatsSubscription | null = null;
  #count = 0;
  #isWell = false;
  #isDeaf = false;

  constructor(connection: NatsConnection, clock: Clock = systemClock) {
    this.#connection = connection;
    this.#clock = clock;
  }

  /** Stores a message; what the headers expect is checked by the server in the same step. */
  store(subject: string, payload: string, lines: string): Promise<ApiAnswer> {
    const bytes = Buffer.from(`NATS/1.0\r\n${lines}\r\n`, 'latin1');
    const headers = { encode: () => bytes };
    const sentMs = this.#clock.monotonicMs();
    this.#giveUp(sentMs);
    if (!this.#isClear(sentMs) || !this.#listens()) return this.#ask(subject, payload, headers);
    const token = (this.#count++).toString(36);
    const answer = new Promise<Uint8Array>((resolve, reject) => {
      this.#awaited.set(token, { sentMs, subject, resolve, reject });
    });
    try {
      this.#connection.publish(subject, payload, { reply: this.#inbox + token, headers });
    } catch {
      // Closed, or too large: `request` says it in words.
      this.#awaited.delete(token);
      return this.#ask(subject, payload, headers);
    }
    return answer.then((data) => {
      // Nobody was there to answer.
      return data.length === 0 ? this.#ask(subject, payload, headers) : answerIn(data, subject);
    });
  }

  close(): void {
    this.#isDeaf = true;
    if (!this.#connection.isClosed()) this.#subscription?.unsubscribe();
    this.#rejectAll('the store was closed');
  }

  async #ask(subject: string, payload: string, headers: unknown): Promise<ApiAnswer> {
    this.#isWell = false;
    const options = { timeout: ANSWER_MS_MAX, headers };
    const data = await answered(this.#connection, subject, payload, options);
    this.#isWell = true;
    return answerIn(data, subject);
  }

  #isClear(nowMs: number): boolean {
    if (!this.#isWell || this.#isDeaf) return false;
    for (const { sentMs } of this.#awaited.values()) return nowMs - sentMs < LATE_MS;
    return true;
  }

  /** Whether answers can be heard; false from the moment that the server said they cannot. */
  #listens(): boolean {
    if (this.#subscription) return true;
    this.#inbox = `${this.#connection.options?.inboxPrefix ?? '_INBOX'}.${randomUUID()}.`;
    try {
      this.#subscription = this.#connection.subscribe(`${this.#inbox}*`, {
        callback: (error, message) => {
          if (!error) return this.#hear(message.subject, message.data);
          this.#isDeaf = true;
          this.#rejectAll(error.message);
        },
      });
    } catch {
      // A connection that is closing: `request` says it in words.
      return false;
    }
    return true;
  }

  #hear(subject: string, data: Uint8Array): void {
    const token = subject.slice(this.#inbox.length);
    this.#awaited.get(token)?.resolve(data);
    this.#awaited.delete(token);
  }

  /** Later writes do it: whoever still waits for one of these asks again anyway, and that is a later write. */
  #giveUp(nowMs: number): void {
    for (const [token, { sentMs, subject, reject }] of this.#awaited) {
      if (nowMs - sentMs < ANSWER_MS_MAX) return;
      this.#awaited.delete(token);
      reject(new Error(`NATS did not answer "${subject}" in ${ANSWER_MS_MAX} ms.`));
    }
  }

  #rejectAll(because: string): void {
    for (const { subject, reject } of this.#awaited.values()) {
      reject(new Error(`NATS did not answer "${subject}": ${because}.`));
    }
    this.#awaited.clear();
  }
}
