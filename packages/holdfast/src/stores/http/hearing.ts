/** One open stream of wake-ups, from its making to its end. */
import { systemClock } from '../../clock.js';
import type { Why } from '../../protocol/index.js';
import { EventStream, type ServerEvent } from './event-stream.js';
import type { Line } from './line.js';

export interface Listener {
  onWake(key: string, why: Why): void;
  /** The service's own store lost its hints, or has them again. */
  onHears(hearing: boolean): void;
}

const WHYS: readonly string[] = ['turn', 'waiting', 'evicted'] satisfies Why[];

/** The service says within so long that it listens. */
const READY_MS_MAX = 10_000;
/** It says something every 15 s; a connection that is silent for three times as long is gone, whatever it looks like. */
const QUIET_MS_MAX = 45_000;

export class Hearing {
  /** Where it is. */
  readonly url: string;
  /** Resolves when the service listens; rejects when it never will. */
  readonly ready: Promise<void>;
  /** Resolves with the reason, once it is over. */
  readonly over: Promise<unknown>;
  readonly #controller = new AbortController();
  readonly #listener: Listener;
  #heardMs = systemClock.monotonicMs();
  #isReady = false;
  #onReady: () => void = () => undefined;

  constructor(line: Line, inbox: string, listener: Listener) {
    this.#listener = listener;
    this.url = line.servers.current;
    const ready = new Promise<void>((resolve) => {
      this.#onReady = resolve;
    });
    const ended = this.#read(line, inbox);
    this.over = ended.catch((error: unknown) => error);
    this.ready = Promise.race([ready, ended]);
  }

  /** Nothing came for too long. */
  get isStale(): boolean {
    return systemClock.monotonicMs() - this.#heardMs > (this.#isReady ? QUIET_MS_MAX : READY_MS_MAX);
  }

  end(why: string): void {
    this.#controller.abort(new Error(why));
  }

  async #read(line: Line, inbox: string): Promise<never> {
    const { signal } = this.#controller;
    try {
      const { body } = await line.open(`/v2/inboxes/${encodeURIComponent(inbox)}/events`, this.#controller);
      const events = new EventStream();
      for await (const bytes of body) {
        // Whoever ended it hears nothing more, whatever had come by then.
        signal.throwIfAborted();
        this.#heardMs = systemClock.monotonicMs();
        for (const event of events.push(bytes)) this.#take(event);
      }
    } finally {
      // Also where reading failed: the connection is of no use any more.
      this.#controller.abort();
    }
    throw new Error('The service ended the stream of wake-ups.');
  }

  #take({ event, data }: ServerEvent): void {
    switch (event) {
      case 'ready':
        this.#isReady = true;
        this.#onReady();
        return;
      case 'wake': {
        const { key, why } = JSON.parse(data) as { readonly key?: unknown; readonly why?: unknown };
        if (typeof key !== 'string' || typeof why !== 'string' || !WHYS.includes(why)) return;
        if (!this.#controller.signal.aborted) this.#listener.onWake(key, why as Why);
        return;
      }
      case 'hears':
        this.#listener.onHears((JSON.parse(data) as { readonly hearing?: unknown }).hearing === true);
        return;
      case 'trouble':
        throw new Error('The service cannot listen to its store now.');
      default:
    }
  }
}
