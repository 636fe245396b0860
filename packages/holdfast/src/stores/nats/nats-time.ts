/**
 * The bucket's time: the clock of the server that timestamps its messages. Newer servers return it with the stream's
 * description, in one call. On others a message is stored under a key that no lock can have, and its timestamp is read.
 */
import { type Clock, systemClock } from '../../clock.js';
import type { StoreTime } from '../compare-and-swap/register.js';
import { TimeEstimate } from '../compare-and-swap/time-estimate.js';
import { type Bucket, subjectOf } from './bucket.js';
import {
  ANSWER_MS_MAX,
  type ApiResponse,
  callApi,
  type NatsConnection,
  parseResponse,
  requestBytes,
} from './connection.js';
import { CLOCK_KEY } from './keys.js';

export class NatsTime extends TimeEstimate implements StoreTime {
  readonly #connection: NatsConnection;
  readonly #bucket: Bucket;
  readonly #subject: string;
  readonly #clock: Clock;
  /** Whether the description has the time; null while that is not known. */
  #isDescribed: boolean | null = null;

  constructor(connection: NatsConnection, bucketName: string, bucket: Bucket, clock: Clock = systemClock) {
    super(undefined, clock);
    this.#connection = connection;
    this.#bucket = bucket;
    this.#subject = subjectOf(bucketName, CLOCK_KEY);
    this.#clock = clock;
  }

  async sample(): Promise<void> {
    if (this.#isDescribed !== false) {
      const sentMs = this.#clock.monotonicMs();
      const answer = await this.#bucket.info();
      if (this.#noteFrom(answer, sentMs)) return;
    }
    await this.#storeAndRead();
  }

  /** Whether the answer had the time. */
  #noteFrom({ ts }: ApiResponse, sentMs: number): boolean {
    this.#isDescribed = ts !== undefined;
    if (ts === undefined) return false;
    const serverMs = Date.parse(ts);
    this.note(sentMs, this.#clock.monotonicMs(), serverMs, serverMs + 1);
    return true;
  }

  async #storeAndRead(): Promise<void> {
    const sentMs = this.#clock.monotonicMs();
    const options = { timeout: ANSWER_MS_MAX };
    const answer = await requestBytes(this.#connection, this.#subject, 'the time', options);
    const { seq } = parseResponse(answer, this.#subject);
    const storedMs = this.#clock.monotonicMs();
    const { message } = await callApi(this.#connection, `STREAM.MSG.GET.${this.#bucket.stream}`, {
      last_by_subj: this.#subject,
    });
    if (!message || seq === undefined || message.seq < seq) {
      throw new Error(
        'The server returned an older message than it had just stored, so its time is not known.',
      );
    }
    // Another process may have stored a later message before this answer.
    const receivedMs = message.seq === seq ? storedMs : this.#clock.monotonicMs();
    const stamp = Math.floor(Date.parse(message.time));
    this.note(sentMs, receivedMs, stamp, stamp + 1);
  }
}
