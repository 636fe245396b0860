/** Notes what one process asks of its store, what it is answered and how it is woken: by the store's time, not by how fast the test is. */
import type { Command, Reply, Store } from 'holdfast/protocol';
import { machineMs } from './turns.js';

interface LoggedCommand {
  readonly command: Command;
  readonly sentMs: number;
  /** Null while it is unanswered, and when it was rejected. */
  reply: Reply | null;
  answeredMs: number | null;
}

export class StoreLog {
  readonly commands: LoggedCommand[] = [];
  /** The keys of the wake-ups that say "it is your turn". */
  readonly turns: string[] = [];

  /** The store, with everything noted. */
  on(store: Store): Store {
    const { listen } = store;
    return {
      ...store,
      apply: (commands) => store.apply(commands).map((reply, at) => this.#note(commands[at], reply)),
      ...(listen && {
        listen: (inbox, wake, onListening) =>
          listen(
            inbox,
            (key, why) => {
              if (why === 'turn') this.turns.push(key);
              wake(key, why);
            },
            onListening,
          ),
      }),
    };
  }

  /** The store's times of the replies of this kind, about one key. */
  timesOf(kind: Reply['kind'], key: string): readonly number[] {
    return this.commands.flatMap(({ command, reply }) =>
      reply?.kind === kind && command.key === key ? [reply.now] : [],
    );
  }

  async #note(command: Command | undefined, reply: Promise<Reply>): Promise<Reply> {
    if (!command) throw new Error('A reply without a command.');
    const logged: LoggedCommand = { command, sentMs: machineMs(), reply: null, answeredMs: null };
    this.commands.push(logged);
    logged.reply = await reply;
    logged.answeredMs = machineMs();
    return logged.reply;
  }
}
