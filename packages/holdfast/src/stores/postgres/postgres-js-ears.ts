/**
 * Hearing hints through `sql.listen` of postgres, which has a connection of its own for that. It listens again when that
 * is lost, but only once: where the server is not back by then it never does, and keeps the failure for all who ask for
 * that channel later. So after trouble it is made to forget its channels, and told to listen anew.
 */
import { systemClock } from '../../clock.js';
import { type Ears, type Hear, TRY_AGAIN_MS } from './ears.js';

interface Listening {
  unlisten(): Promise<void>;
}

interface PostgresJsListen {
  readonly listen: {
    (channel: string, hear: Hear): PromiseLike<Listening>;
    channels?: Record<string, unknown>;
  };
}

interface Ear {
  readonly channel: string;
  readonly hear: Hear;
  listening: Promise<Listening>;
}

export function postgresJsEars(sql: PostgresJsListen): Ears {
  const ears = new Set<Ear>();
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

  const listen = async (channel: string, hear: Hear): Promise<Listening> => await sql.listen(channel, hear);

  async function leave({ listening }: Ear): Promise<void> {
    // Where it cannot be said, there is nothing to leave.
    await listening.then(({ unlisten }) => unlisten()).catch(note);
  }

  function forget(channel: string): void {
    const { channels } = sql.listen;
    if (channels) delete channels[channel];
  }

  return {
    async listen(channel, hear) {
      const heard = (payload: string): void => {
        if (ears.has(ear)) hear(payload);
      };
      const ear: Ear = { channel, hear: heard, listening: listen(channel, heard) };
      ears.add(ear);
      try {
        await Promise.race([ear.listening, closed]);
      } catch (error) {
        ears.delete(ear);
        forget(channel);
        throw error;
      }
      return async () => {
        if (ears.delete(ear)) void leave(ear);
      };
    },
    mend() {
      if (!doubtful || ears.size === 0 || systemClock.monotonicMs() - triedAt < TRY_AGAIN_MS) return;
      triedAt = systemClock.monotonicMs();
      doubtful = false;
      for (const { channel } of ears) forget(channel);
      for (const ear of ears) {
        ear.listening = listen(ear.channel, ear.hear);
        ear.listening.catch((error: unknown) => {
          note(error);
          doubtful = true;
        });
      }
    },
    doubt() {
      doubtful = true;
    },
    trouble: () => (doubtful ? trouble : null),
    close() {
      for (const ear of ears) void leave(ear);
      ears.clear();
      giveUp(new Error('This PostgreSQL store is closed.'));
    },
  };
}
