/**
 * Hearing hints: one connection a store that does nothing but LISTEN. Hints are a help, not a need, so a connection
 * that is lost costs nothing but time, and is made again by the way, when commands are sent: no timer watches it.
 * Errors of it never get out.
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
  on(event: 'error' | 'end', run: () => void): unknown;
  unref?(): void;
}

type Hear = (payload: string) => void;

export interface Ears {
  /** Rejects when it cannot be listened now. */
  listen(channel: string, hear: Hear): Promise<() => Promise<void>>;
  /** Makes a lost connection again, unless that was tried a moment ago. */
  mend(): void;
  /** Commands met a broken connection: listening may have broken too, unheard. */
  doubt(): void;
  close(): void;
}

const TRY_AGAIN_MS = 500;
/** A connection that takes longer than this to be made is given up. */
const CONNECT_MS_MAX = 10_000;

interface Line {
  readonly client: ListenClient;
  readonly since: number;
  ready: boolean;
  lost: boolean;
  /** Statements one after the other. */
  tail: Promise<unknown>;
}

/** Over a connection of its own, made by `make`. */
export function pgEars(make: () => ListenClient): Ears {
  const hearers = new Map<string, Set<Hear>>();
  let line: Line | null = null;
  let triedAt = Number.NEGATIVE_INFINITY;

  function drop(dropped: Line): void {
    if (dropped.lost) return;
    dropped.lost = true;
    // It may be half open, and end only when the other side says so: nobody waits for that.
    dropped.client.end().catch(() => undefined);
  }

  function say(on: Line, text: string): Promise<unknown> {
    on.tail = on.tail.then(() => on.client.query(text));
    return on.tail;
  }

  function connect(): Line {
    const client = make();
    const made: Line = {
      client,
      since: systemClock.monotonicMs(),
      ready: false,
      lost: false,
      tail: client.connect(),
    };
    triedAt = made.since;
    client.on('error', () => drop(made));
    client.on('end', () => drop(made));
    client.on('notification', ({ channel, payload }) => {
      for (const hear of hearers.get(channel) ?? []) hear(payload ?? '');
    });
    made.tail = made.tail.then(() => {
      made.ready = true;
      client.unref?.();
    });
    for (const channel of hearers.keys())
      void say(made, `LISTEN ${quoteName(channel)}`).catch(() => drop(made));
    made.tail.catch(() => drop(made));
    line = made;
    return made;
  }

  function isUsable(some: Line | null): some is Line {
    if (!some || some.lost) return false;
    return some.ready || systemClock.monotonicMs() - some.since < CONNECT_MS_MAX;
  }

  return {
    async listen(channel, hear) {
      const own = hearers.get(channel) ?? new Set();
      hearers.set(channel, own.add(hear));
      const current = isUsable(line) ? line : null;
      try {
        if (current) await say(current, `LISTEN ${quoteName(channel)}`);
        else await connect().tail;
      } catch (error) {
        if (current) drop(current);
        own.delete(hear);
        if (own.size === 0) hearers.delete(channel);
        throw error;
      }
      return async () => {
        own.delete(hear);
        if (own.size > 0 || hearers.get(channel) !== own) return;
        hearers.delete(channel);
        if (!isUsable(line)) return;
        const { lost } = line;
        if (!lost) await say(line, `UNLISTEN ${quoteName(channel)}`).catch(() => undefined);
      };
    },
    mend() {
      if (hearers.size === 0 || isUsable(line)) return;
      if (systemClock.monotonicMs() - triedAt < TRY_AGAIN_MS) return;
      if (line) drop(line);
      connect();
    },
    // Its own events say when it is lost.
    doubt: () => undefined,
    close() {
      hearers.clear();
      if (line) drop(line);
    },
  };
}

interface PostgresJsListen {
  listen(channel: string, hear: Hear): PromiseLike<{ unlisten(): Promise<void> }>;
}

interface Ear {
  readonly channel: string;
  readonly hear: Hear;
  listening: Promise<{ unlisten(): Promise<void> }>;
}

/**
 * Over `sql.listen` of postgres, which has a connection of its own for that. It listens again when that is lost, but
 * only once: where the server is not back yet, it never does. So after trouble it is told to listen anew.
 */
export function postgresJsEars(sql: PostgresJsListen): Ears {
  const ears = new Set<Ear>();
  let doubtful = false;
  let triedAt = Number.NEGATIVE_INFINITY;

  const listen = async (channel: string, hear: Hear): Promise<{ unlisten(): Promise<void> }> =>
    await sql.listen(channel, hear);

  async function leave({ listening }: Ear): Promise<void> {
    await listening.then(({ unlisten }) => unlisten()).catch(() => undefined);
  }

  async function again(ear: Ear): Promise<{ unlisten(): Promise<void> }> {
    await leave(ear);
    return await listen(ear.channel, ear.hear);
  }

  return {
    async listen(channel, hear) {
      const ear: Ear = { channel, hear, listening: listen(channel, hear) };
      await ear.listening;
      ears.add(ear);
      return async () => {
        ears.delete(ear);
        await leave(ear);
      };
    },
    mend() {
      if (!doubtful || ears.size === 0 || systemClock.monotonicMs() - triedAt < TRY_AGAIN_MS) return;
      triedAt = systemClock.monotonicMs();
      doubtful = false;
      for (const ear of ears) {
        ear.listening = again(ear);
        ear.listening.catch(() => {
          doubtful = true;
        });
      }
    },
    doubt() {
      doubtful = true;
    },
    close() {
      for (const ear of ears) void leave(ear);
      ears.clear();
    },
  };
}
