/**
 * Hearing hints through `sql.listen` of postgres, which has a connection of its own for that. It listens again when that
 * is lost, but only once: where the server is not back by then it never does, and keeps the failure for all who ask for
 * that channel later. So after trouble it is made to forget its channels, and told to listen anew.
 */
import { systemClock } from '../../clock.js';
import { type Ear, type Ears, TRY_AGAIN_MS } from './ears.js';

interface Listening {
  unlisten(): Promise<void>;
}

interface PostgresJsListen {
  readonly listen: {
    (channel: string, hear: (payload: string) => void): PromiseLike<Listening>;
    channels?: Record<string, unknown>;
  };
}

interface Opened {
  readonly channel: string;
  readonly ear: Ear;
  listening: Promise<Listening>;
}

export function postgresJsEars(sql: PostgresJsListen): Ears {
  const opened = new Set<Opened>();
  let doubtful = false;
  let triedAt = Number.NEGATIVE_INFINITY;
  let trouble: unknown = null;
  let giveUp: (error: Error) => void = () => undefined;
  const closed = new Promise<never>((_, reject) => {
    giveUp = reject;
  });
  closed.catch(note);

  function note(error: unknown): void {
    trouble = error;
  }

  function tellAll(hearing: boolean): void {
    for (const { ear } of opened) ear.hears?.(hearing);
  }

  const listen = async (channel: string, ear: Ear): Promise<Listening> =>
    await sql.listen(channel, (payload) => ear.hear(payload));

  async function leave({ listening }: Opened): Promise<void> {
    // Where it cannot be said, there is nothing to leave.
    await listening.then(({ unlisten }) => unlisten()).catch(note);
  }

  function forget(channel: string): void {
    const { channels } = sql.listen;
    if (channels) delete channels[channel];
  }

  async function listenAgain(): Promise<void> {
    for (const { channel } of opened) forget(channel);
    try {
      const all = [...opened];
      for (const one of all) one.listening = listen(one.channel, one.ear);
      await Promise.all(all.map(({ listening }) => listening));
      if (!doubtful) tellAll(true);
    } catch (error) {
      // Tried again with later commands.
      note(error);
      doubtful = true;
    }
  }

  return {
    async listen(channel, ear) {
      const one: Opened = { channel, ear, listening: listen(channel, ear) };
      opened.add(one);
      try {
        await Promise.race([one.listening, closed]);
      } catch (error) {
        opened.delete(one);
        forget(channel);
        throw error;
      }
      return async () => {
        if (opened.delete(one)) void leave(one);
      };
    },
    mend() {
      if (!doubtful || opened.size === 0 || systemClock.monotonicMs() - triedAt < TRY_AGAIN_MS) return;
      triedAt = systemClock.monotonicMs();
      doubtful = false;
      void listenAgain();
    },
    doubt() {
      doubtful = true;
      tellAll(false);
    },
    trouble: () => (doubtful ? trouble : null),
    close() {
      for (const one of opened) void leave(one);
      opened.clear();
      giveUp(new Error('This PostgreSQL store is closed.'));
    },
  };
}
