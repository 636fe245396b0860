/**
 * The bucket's time: that of the server which stamps its messages. Newer servers tell it with the stream's description,
 * in one call. To others a message is stored under a key that no lock can have, and its stamp is read.
 */
import { type Clock, systemClock } from '../../clock.js';
import type { StoreTime } from '../compare-and-swap/register.js';
import { TimeEstimate } from '../compare-and-swap/time-estimate.js';
import { type Bucket, subjectOf } from './bucket.js';
import {
  ANSWER_MS_MAX,
  type ApiAnswer,
  answered,
  answerIn,
  askApi,
  type NatsConnection,
} from './connection.js';
import { CLOCK_KEY } from './keys.js';

export class NatsTime extends TimeEstimate implements StoreTime {
  readonly #connection: NatsConnection;
  readonly #bucket: Bucket;
  readonly #subject: string;
  readonly #clock: Clock;
  /** Whether the description has the time; null while that is not known. */
  #tells: boolean | null = null;

  constructor(connection: NatsConnection, bucketName: string, bucket: Bucket, clock: Clock = systemClock) {
    super(undefined, clock);
    this.#connection = connection;
    this.#bucket = bucket;
    this.#subject = subjectOf(bucketName, CLOCK_KEY);
    this.#clock = clock;
  }

  async sample(): Promise<void> {
    if (this.#tells !== false) {
      const sentMs = this.#clock.monotonicMs();
      const answer = await this.#bucket.info();
      if (this.#told(answer, sentMs)) return;
    }
    await this.#storeAndLook();
  }

  /** Whether the answer had the time. */
  #told({ ts }: ApiAnswer, sentMs: number): boolean {
    this.#tells = ts !== undefined;
    if (ts === undefined) return false;
    const told = Date.parse(ts);
    this.note(sentMs, this.#clock.monotonicMs(), told, told + 1);
    return true;
  }

  async #storeAndLook(): Promise<void> {
    const sentMs = this.#clock.monotonicMs();
    const options = { timeout: ANSWER_MS_MAX };
    const told = await answered(this.#connection, this.#subject, 'the time', options);
    const { seq } = answerIn(told, this.#subject);
    const storedMs = this.#clock.monotonicMs();
    const { message } = await askApi(this.#connection, `STREAM.MSG.GET.${this.#bucket.stream}`, {
      last_by_subj: this.#subject,
    });
    if (!message || seq === undefined || message.seq < seq) {
      throw new Error('The server showed an older message than it had just stored: its time is not known.');
    }
    // Another process may have stored a later one, before this answer.
    const receivedMs = message.seq === seq ? storedMs : this.#clock.monotonicMs();
    const stamp = Math.floor(Date.parse(message.time));
    this.note(sentMs, receivedMs, stamp, stamp + 1);
  }
}
