/**
 * Writes, with their answers on one subscription. The client's `request` creates an error with its stack and a timer for
 * every request, which costs more than the rest of an acquire.
 *
 * The fast way is used while answers arrive. The first write uses `request`, and so does every write from the moment
 * that an answer is late or missing until `request` has succeeded: it gets the reason from the client. A write may be
 * sent twice that way, which its expected revision makes harmless.
 */
import { systemClock, type Timer } from '../../clock.js';
import {
  ANSWER_MS_MAX,
  type ApiResponse,
  type NatsConnection,
  type NatsSubscription,
  parseResponse,
  requestBytes,
} from './connection.js';

/** An answer that takes longer may never come. */
const LATE_MS = 200;

interface PendingWrite {
  readonly sentMs: number;
  readonly subject: string;
  readonly resolve: (data: Uint8Array) => void;
  readonly reject: (error: Error) => void;
}

export class Writes {
  readonly #connection: NatsConnection;
  /** By the last token of the answer's subject, in the order of sending. */
  readonly #pending = new Map<string, PendingWrite>();
  #inbox = '';
  #subscription: NatsSubscription | null = null;
  #timer: Timer | null = null;
  #count = 0;
  #requestWorked = false;
  #isDisabled = false;
  /** The last error that no caller was told; undefined for none. */
  error: unknown;

  constructor(connection: NatsConnection) {
    this.#connection = connection;
  }

  /** Stores a message. The server checks the expectation in the headers in the same step. */
  store(subject: string, payload: string, lines: string): Promise<ApiResponse> {
    const bytes = Buffer.from(`NATS/1.0\r\n${lines}\r\n`, 'latin1');
    const headers = { encode: () => bytes };
    const sentMs = systemClock.monotonicMs();
    if (!this.#isFast(sentMs) || !this.#subscribed()) return this.#request(subject, payload, headers);
    const token = (this.#count++).toString(36);
    const answer = new Promise<Uint8Array>((resolve, reject) => {
      this.#pending.set(token, { sentMs, subject, resolve, reject });
    });
    this.#timer ??= this.#setTimer();
    try {
      this.#connection.publish(subject, payload, { reply: this.#inbox + token, headers });
    } catch (error) {
      // Closed, or too large: `request` gives the reason.
      this.error = error;
      this.#pending.delete(token);
      return this.#request(subject, payload, headers);
    }
    return answer.then((data) => {
      // No responder.
      return data.length === 0 ? this.#request(subject, payload, headers) : parseResponse(data, subject);
    });
  }

  close(): void {
    this.#isDisabled = true;
    if (!this.#connection.isClosed()) this.#subscription?.unsubscribe();
    this.#timer?.cancel();
    this.#rejectAll('the store was closed');
  }

  async #request(subject: string, payload: string, headers: unknown): Promise<ApiResponse> {
    this.#requestWorked = false;
    const data = await requestBytes(this.#connection, subject, payload, headers);
    this.#requestWorked = true;
    return parseResponse(data, subject);
  }

  #isFast(nowMs: number): boolean {
    if (!this.#requestWorked || this.#isDisabled) return false;
    for (const { sentMs } of this.#pending.values()) return nowMs - sentMs < LATE_MS;
    return true;
  }

  /** Whether answers can be received. */
  #subscribed(): boolean {
    if (this.#subscription) return true;
    this.#inbox = `${this.#connection.options?.inboxPrefix ?? '_INBOX'}.${systemClock.randomId()}.`;
    try {
      this.#subscription = this.#connection.subscribe(`${this.#inbox}*`, {
        callback: (error, message) => {
          if (!error) return this.#onAnswer(message.subject, message.data);
          this.error = error;
          this.#isDisabled = true;
          this.#rejectAll(error.message);
        },
      });
      return true;
    } catch (error) {
      // A connection that is closing: `request` gives the reason.
      this.error = error;
      return false;
    }
  }

  #onAnswer(subject: string, data: Uint8Array): void {
    const token = subject.slice(this.#inbox.length);
    this.#pending.get(token)?.resolve(data);
    this.#pending.delete(token);
  }

  /** One timer for all: a write is given up after `ANSWER_MS_MAX` to twice that. */
  #setTimer(): Timer {
    const timer = systemClock.timer(ANSWER_MS_MAX, () => {
      this.#giveUp(systemClock.monotonicMs());
      this.#timer = this.#pending.size > 0 ? this.#setTimer() : null;
    });
    timer.keepAlive(false);
    return timer;
  }

  #giveUp(nowMs: number): void {
    for (const [token, { sentMs, subject, reject }] of this.#pending) {
      if (nowMs - sentMs < ANSWER_MS_MAX) return;
      this.#pending.delete(token);
      reject(new Error(`NATS did not answer "${subject}" in ${ANSWER_MS_MAX} ms.`));
    }
  }

  #rejectAll(because: string): void {
    for (const { subject, reject } of this.#pending.values()) {
      reject(new Error(`NATS did not answer "${subject}": ${because}.`));
    }
    this.#pending.clear();
  }
}
