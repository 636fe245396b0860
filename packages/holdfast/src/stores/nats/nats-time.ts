/**
 * The bucket's time: the clock of the server that timestamps its messages. Newer servers return it with the stream's
 * description, in one call. On others a message is stored under a key that no lock can have, and its timestamp is read.
 */
import { systemClock } from '../../clock.js';
import type { StoreTime } from '../compare-and-swap/register.js';
import { TimeEstimate } from '../compare-and-swap/time-estimate.js';
import type { Bucket } from './bucket.js';
import { parseResponse, requestBytes } from './connection.js';
import { CLOCK_KEY } from './keys.js';

export class NatsTime extends TimeEstimate implements StoreTime {
  readonly #bucket: Bucket;
  /** False once a description came without the time. */
  #isDescribed = true;

  constructor(bucket: Bucket) {
    super();
    this.#bucket = bucket;
  }

  async sample(): Promise<void> {
    const sentMs = systemClock.monotonicMs();
    const { ts } = this.#isDescribed ? await this.#bucket.info() : {};
    this.#isDescribed = ts !== undefined;
    if (ts === undefined) await this.#storeAndRead();
    else this.#noteStamp(sentMs, systemClock.monotonicMs(), ts);
  }

  async #storeAndRead(): Promise<void> {
    const subject = this.#bucket.subjectOf(CLOCK_KEY);
    const sentMs = systemClock.monotonicMs();
    const answer = await requestBytes(this.#bucket.connection, subject, 'the time');
    const { seq } = parseResponse(answer, subject);
    const storedMs = systemClock.monotonicMs();
    const { message } = await this.#bucket.call('MSG.GET', { last_by_subj: subject });
    if (!message || seq === undefined || message.seq < seq) {
      throw new Error(
        'The server returned an older message than it had just stored, so its time is not known.',
      );
    }
    // Another process may have stored a later message before this answer.
    const receivedMs = message.seq === seq ? storedMs : systemClock.monotonicMs();
    this.#noteStamp(sentMs, receivedMs, message.time);
  }

  #noteStamp(sentMs: number, receivedMs: number, text: string): void {
    const stamp = Math.floor(Date.parse(text));
    this.note(sentMs, receivedMs, stamp, stamp + 1);
  }
}
