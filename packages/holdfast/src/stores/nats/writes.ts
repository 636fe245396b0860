/**
 * Writes, with their answers on one subscription of their own. The client's `request` makes an error with its stack for
 * every request, also for one that is answered, and sets a timer: that costs more than all the rest of a lock.
 *
 * Only while all is well. The first write goes by `request`, and so does every one from the moment that an answer is late
 * or missing until one came back that way: `request` is told by the client why there is none. A write may be said twice
 * by that, which its expected revision makes harmless.
 */
import { type Clock, systemClock, type Timer } from '../../clock.js';
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
  #timer: Timer | null = null;
  #count = 0;
  #isWell = false;
  #isDeaf = false;
  #trouble: unknown;

  constructor(connection: NatsConnection, clock: Clock = systemClock) {
    this.#connection = connection;
    this.#clock = clock;
  }

  /** What went wrong last without anybody being told. */
  get trouble(): unknown {
    return this.#trouble;
  }

  /** Stores a message; what the headers expect is checked by the server in the same step. */
  store(subject: string, payload: string, lines: string): Promise<ApiAnswer> {
    const bytes = Buffer.from(`NATS/1.0\r\n${lines}\r\n`, 'latin1');
    const headers = { encode: () => bytes };
    const sentMs = this.#clock.monotonicMs();
    if (!this.#isClear(sentMs) || !this.#listens()) return this.#ask(subject, payload, headers);
    const token = (this.#count++).toString(36);
    const answer = new Promise<Uint8Array>((resolve, reject) => {
      this.#awaited.set(token, { sentMs, subject, resolve, reject });
    });
    this.#timer ??= this.#setTimer();
    try {
      this.#connection.publish(subject, payload, { reply: this.#inbox + token, headers });
    } catch (error) {
      // Closed, or too large: `request` says it in words.
      this.#trouble = error;
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
    this.#timer?.cancel();
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
    this.#inbox = `${this.#connection.options?.inboxPrefix ?? '_INBOX'}.${this.#clock.randomId()}.`;
    try {
      this.#subscription = this.#connection.subscribe(`${this.#inbox}*`, {
        callback: (error, message) => {
          if (!error) return this.#hear(message.subject, message.data);
          this.#trouble = error;
          this.#isDeaf = true;
          this.#rejectAll(error.message);
        },
      });
      return true;
    } catch (error) {
      // A connection that is closing: `request` says it in words.
      this.#trouble = error;
      return false;
    }
  }

  #hear(subject: string, data: Uint8Array): void {
    const token = subject.slice(this.#inbox.length);
    this.#awaited.get(token)?.resolve(data);
    this.#awaited.delete(token);
  }

  /** One for all of them: an answer is given up between this time and twice that. */
  #setTimer(): Timer {
    const timer = this.#clock.timer(ANSWER_MS_MAX, () => {
      this.#giveUp(this.#clock.monotonicMs());
      this.#timer = this.#awaited.size > 0 ? this.#setTimer() : null;
    });
    timer.keepAlive(false);
    return timer;
  }

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
