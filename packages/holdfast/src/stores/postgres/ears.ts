/**
 * Hearing hints over one connection a store that does nothing but LISTEN. Hints are a help, not a need, so a connection
 * that is lost costs nothing but time, and is made again by the way, when commands are sent: no timer watches it.
 * Its errors never get out, and nobody waits for one that hangs.
 */
import { systemClock } from '../../clock.js';
import { quoteName } from './sql/quoting.js';

/** A Client of `pg`, not connected yet. */
export interface ListenClient {
  connect(): Promise<unknown>;
  query(text: string): Promise<unknown>;
  end(): Promise<void>;
  on(
    event: 'notification',
    run: (message: { channel: string; payload?: string | undefined }) => void,
  ): unknown;
  on(event: 'error' | 'end', run: (error?: unknown) => void): unknown;
  unref?(): void;
}

/** Somebody who listens on a channel. */
export interface Ear {
  hear(payload: string): void;
  /** Told when nothing can be heard any more, and when it can again. */
  hears?: ((hearing: boolean) => void) | undefined;
}

export interface Ears {
  /** Gives a way to stop. Rejects when it cannot be listened now. */
  listen(channel: string, ear: Ear): Promise<() => Promise<void>>;
  /** Makes a lost connection again, unless that was tried a moment ago. */
  mend(): void;
  /** Commands met a broken connection: listening may have broken too, unheard. */
  doubt(): void;
  /** What went wrong last, if nothing is heard now. */
  trouble(): unknown;
  close(): void;
}

export const TRY_AGAIN_MS = 500;
/** A connection that takes longer than this to be made is given up. */
const CONNECT_MS_MAX = 10_000;

/** One connection, from its making to its loss. */
class Line {
  readonly #client: ListenClient;
  readonly #since = systemClock.monotonicMs();
  readonly #told: () => void;
  readonly #gone: Promise<never>;
  #giveUp: (error: unknown) => void = () => undefined;
  /** Why it was lost. */
  trouble: unknown = null;
  #connected = false;
  #lost = false;
  /** Statements one after the other. */
  #tail: Promise<unknown>;

  constructor(client: ListenClient, hear: (channel: string, payload: string) => void, lost: () => void) {
    this.#client = client;
    this.#told = lost;
    this.#gone = new Promise((_, reject) => {
      this.#giveUp = reject;
    });
    this.#gone.catch(this.#note);
    client.on('error', this.#lose);
    client.on('end', () => this.drop());
    client.on('notification', ({ channel, payload }) => hear(channel, payload ?? ''));
    this.#tail = client.connect().then(() => {
      this.#connected = true;
      client.unref?.();
    });
    // Now too: where it never gets through, it keeps no process alive either.
    client.unref?.();
    this.#tail.catch(this.#lose);
  }

  readonly #note = (error: unknown): void => {
    this.trouble ??= error;
  };

  readonly #lose = (error: unknown): void => {
    this.#note(error);
    this.drop();
  };

  get usable(): boolean {
    if (this.#lost) return false;
    return this.#connected || systemClock.monotonicMs() - this.#since < CONNECT_MS_MAX;
  }

  /** Rejects once the connection is lost, if not before. */
  async say(text: string): Promise<void> {
    const said = this.#tail.then(() => this.#client.query(text));
    this.#tail = said;
    said.catch(this.#lose);
    await Promise.race([said, this.#gone]);
  }

  /** For those who do not wait for it. A failure is the end of the connection. */
  tell(text: string): void {
    this.say(text).catch(this.#note);
  }

  drop(): void {
    if (this.#lost) return;
    this.#lost = true;
    this.#giveUp(this.trouble ?? new Error('The connection that listens for hints is gone.'));
    // Not waited for: half open, it would end only when the other side says so.
    this.#client.end().catch(this.#note);
    this.#told();
  }
}

/** Over a connection made by `make`. */
export function pgEars(make: () => ListenClient): Ears {
  const ears = new Map<string, Set<Ear>>();
  let line: Line | null = null;
  let triedAt = Number.NEGATIVE_INFINITY;
  let makingFailed: unknown = null;

  function tellAll(hearing: boolean): void {
    for (const ear of [...ears.values()].flatMap((own) => [...own])) ear.hears?.(hearing);
  }

  function connect(): Line {
    triedAt = systemClock.monotonicMs();
    const hear = (channel: string, payload: string): void => {
      for (const ear of ears.get(channel) ?? []) ear.hear(payload);
    };
    const made = new Line(make(), hear, () => {
      if (line === made) tellAll(false);
    });
    line = made;
    makingFailed = null;
    return made;
  }

  function forget(channel: string, ear: Ear): boolean {
    const own = ears.get(channel);
    own?.delete(ear);
    return own?.size === 0 && ears.delete(channel);
  }

  async function connectAgain(): Promise<void> {
    try {
      const made = connect();
      await Promise.all([...ears.keys()].map((channel) => made.say(`LISTEN ${quoteName(channel)}`)));
      if (line === made) tellAll(true);
    } catch (error) {
      // The commands that are about to be sent need it not. It is tried again with later ones.
      makingFailed = error;
    }
  }

  return {
    async listen(channel, ear) {
      ears.set(channel, (ears.get(channel) ?? new Set()).add(ear));
      try {
        await (line?.usable ? line : connect()).say(`LISTEN ${quoteName(channel)}`);
      } catch (error) {
        forget(channel, ear);
        throw error;
      }
      return async () => {
        // Not waited for: it hears nothing more from now on, whether or not the server hears of it.
        if (forget(channel, ear) && line?.usable) line.tell(`UNLISTEN ${quoteName(channel)}`);
      };
    },
    mend() {
      if (ears.size === 0 || line?.usable) return;
      if (systemClock.monotonicMs() - triedAt < TRY_AGAIN_MS) return;
      line?.drop();
      void connectAgain();
    },
    // Its own events tell when it is lost.
    doubt: () => undefined,
    trouble: () => (line?.usable ? null : (makingFailed ?? line?.trouble ?? null)),
    close() {
      ears.clear();
      line?.drop();
    },
  };
}
