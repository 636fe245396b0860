/**
 * One command, said until it is answered. An attempt that is rejected or unanswered is unknown: the same command goes
 * out again, with the same hold. The first answer to any of the attempts counts; later ones are ignored.
 */
import { UnsupportedError } from 'holdfast';
import { ATTEMPT_MS, type Command, type Reply } from 'holdfast/protocol';
import { after, type Cancel, monotonicMs, random } from '../clock.js';

/** The pause before a rejected command is said again, doubling with every attempt. */
const REJECTED_MS = 50;
const REJECTED_MS_MAX = 2_000;
/** The jitter before an unanswered one is. */
const JITTER_MS = 25;
/** However short a lock is held: a store needs some time to answer, and an answer given up on is "unknown". */
const PATIENCE_MS_MIN = 50;

/** Who began it, and what they want to hear. */
export interface Speaker {
  /** The answer, and the moment before the attempt that it answers was sent. */
  onReply(reply: Reply, sentMs: number): void;
  /** An attempt came to nothing known. More follow, until stopped. */
  onUnknown(cause: unknown): void;
  /** The store can never do this: said once, and nothing follows. */
  onRefused(error: UnsupportedError): void;
}

type Send = (command: Command) => Promise<Reply>;

export class Talk {
  readonly command: Command;
  readonly #send: Send;
  readonly #patienceMsMax: number;
  readonly #speaker: Speaker;
  #attempts = 0;
  #unanswered = 0;
  #cancel: Cancel | null = null;
  #open = true;

  /** A quarter of `ttlMs` bounds how long one attempt is awaited, above the least. */
  constructor(send: Send, command: Command, ttlMs: number, speaker: Speaker) {
    this.#send = send;
    this.command = command;
    this.#patienceMsMax = Math.max(ttlMs / 4, PATIENCE_MS_MIN);
    this.#speaker = speaker;
    this.#attempt();
  }

  get open(): boolean {
    return this.#open;
  }

  /** Attempts whose outcome nobody knows: the store may apply them yet. */
  get unanswered(): number {
    return this.#unanswered;
  }

  stop(): void {
    this.#open = false;
    this.#cancel?.();
    this.#cancel = null;
  }

  #attempt(): void {
    const number = ++this.#attempts;
    const sentMs = monotonicMs();
    this.#unanswered += 1;
    this.#cancel = after(this.#patienceMs(ATTEMPT_MS), () => {
      this.#again(random() * JITTER_MS, new Error('The store did not answer in time.'));
    });
    this.#send(this.command).then(
      (reply) => this.#heard(reply, sentMs),
      (cause: unknown) => this.#rejected(number, cause),
    );
  }

  #heard(reply: Reply, sentMs: number): void {
    this.#unanswered -= 1;
    if (!this.#open) return;
    this.stop();
    this.#speaker.onReply(reply, sentMs);
  }

  #rejected(number: number, cause: unknown): void {
    if (!this.#open || number !== this.#attempts) return;
    if (cause instanceof UnsupportedError) {
      this.#unanswered -= 1;
      this.stop();
      this.#speaker.onRefused(cause);
      return;
    }
    const mostMs = Math.min(this.#patienceMs(REJECTED_MS), REJECTED_MS_MAX);
    this.#again(mostMs * (0.5 + random() / 2), cause);
  }

  #again(pauseMs: number, cause: unknown): void {
    this.#cancel?.();
    // So that the answer of the attempt just given up, should it be a rejection, does not count twice.
    this.#attempts += 1;
    this.#cancel = after(pauseMs, () => this.#attempt());
    this.#speaker.onUnknown(cause);
  }

  #patienceMs(baseMs: number): number {
    return Math.min(baseMs * 2 ** Math.floor((this.#attempts - 1) / 2), this.#patienceMsMax);
  }
}
