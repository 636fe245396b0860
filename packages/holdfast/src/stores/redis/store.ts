/**
 * Locks in Redis: one server, one behind Sentinel, or a Cluster.
 *
 * Layout: one key a lock, the prefix and the lock's key, with the whole state in one string of bytes (see
 * lua/layout.ts), and nothing else. Every write sets its time to live by the rule in `expendableAt`, so records go by
 * themselves. A key is whole on one server of a Cluster: there is no CROSSSLOT.
 *
 * Atomic: a script decides inside Redis, which does nothing else meanwhile. A batch is one call, cut so that no call
 * blocks the server for long; on a Cluster it is one call a key, all sent at once, each settling alone. Commands of
 * one key are always in one call, in order.
 *
 * Clock: the server's, by TIME inside the script. On a Cluster every key has the clock of the server that has it.
 *
 * Hints are published by the script, after the write, to one channel an inbox. They are plain publications on a
 * Cluster too: a sharded one to a channel of another server would fail after the write went through.
 *
 * A reply is lost with its connection, or when the client gives up: the command may have been applied or not, and the
 * core asks again. Clients that keep commands and send them late or twice do no harm: the hold is the same. A crash
 * loses what the server had not written to disk, a failover what the replica had not got: `probe` says what that is.
 *
 * Nothing here waits, retries or sets a timer; the clients reconnect by themselves.
 */
import {
  type Command,
  type Reply,
  type Snapshot,
  type Store,
  snapshotOf,
  type Traits,
  UnsupportedError,
} from '../../protocol/index.js';
import { caller } from './caller.js';
import { connectionTo, type RedisClient, subscriberOn } from './clients.js';
import { READ, textOfCommand } from './commands.js';
import { keysListed } from './listing.js';
import { probe } from './probe.js';
import { type Answers, isForeignAt, replyOf, timeOf } from './replies.js';
import { stateOf } from './states.js';
import { subscription } from './subscription.js';

export interface StoreParts {
  readonly prefix: string;
  readonly subscriber: RedisClient | undefined;
}

const TRAITS: Traits = {
  clock: 'store',
  clockErrorMs: 0,
  push: true,
  queue: true,
  shared: 'network',
  durable: false,
  vigilMs: null,
};

/** How many commands one call has at most. Client and server work at the same time when a batch is cut in two. */
const CALL_MAX = 32;
/** Nobody waits for renewals, and thousands may be due at once: fewer calls, each a millisecond or two of the server. */
const RENEWALS_MAX = 256;

export function storeOn(client: RedisClient, { prefix, subscriber }: StoreParts): Store {
  const connection = connectionTo(client);
  const keysBegin = connection.keyPrefix + prefix;
  const channelsBegin = `${keysBegin}inbox:`;
  const run = caller(connection);
  const hints = subscription(
    (heard, hears) =>
      subscriber ? subscriberOn(subscriber, heard, hears) : connection.subscriber(heard, hears),
    keysBegin,
  );
  let closed = false;

  function checkUsable(): void {
    if (closed) throw new UnsupportedError('This Redis store is closed.');
    connection.checkUsable();
  }

  function call<T>(commands: readonly Command[], decode: (answers: Answers) => T): Promise<T> {
    const keys = commands.map(({ key }) => prefix + key);
    const texts = commands.map((command) => textOfCommand(command, channelsBegin));
    return run(keys, texts, decode);
  }

  function replyTo(command: Command, answers: Answers, index: number): Reply {
    return replyOf(answers, index, command, keysBegin + command.key);
  }

  function apply(commands: readonly Command[]): readonly Promise<Reply>[] {
    try {
      checkUsable();
      const [command] = commands;
      if (command && commands.length === 1)
        return [call(commands, (answers) => replyTo(command, answers, 0))];
      return applyInCalls(commands);
    } catch (error) {
      // Nothing was sent.
      return commands.map(() => Promise.reject(error));
    }
  }

  function applyInCalls(commands: readonly Command[]): readonly Promise<Reply>[] {
    const replies: Promise<Reply>[] = [];
    for (const indexes of inCalls(commands, connection.isCluster)) {
      const own = indexes.map((index) => commands[index] as Command);
      const answered = call(own, (answers) => answers);
      own.forEach((command, place) => {
        replies[indexes[place] as number] = answered.then((answers) => replyTo(command, answers, place));
      });
    }
    return replies;
  }

  /** The records of these keys, as they are. */
  function look(keys: readonly string[]): Promise<Answers> {
    return run(
      keys.map((key) => prefix + key),
      keys.map(() => READ),
      (answers) => answers,
    );
  }

  function viewOf(key: string, answers: Answers, index: number): Snapshot | null {
    return snapshotOf(key, stateOf(answers, index, key, keysBegin + key), timeOf(answers));
  }

  /** The views of so many keys, those in use only. */
  async function viewsOf(keys: readonly string[]): Promise<readonly Snapshot[]> {
    const pages = connection.isCluster ? keys.map((key) => [key]) : [keys];
    const views = pages.map(async (page) => {
      checkUsable();
      const answers = await look(page);
      return page.flatMap((key, index) => {
        // What is no lock is nobody's business here; a command on it would say so.
        if (isForeignAt(answers, index)) return [];
        return viewOf(key, answers, index) ?? [];
      });
    });
    return (await Promise.all(views)).flat();
  }

  return {
    name: 'redis',
    traits: TRAITS,
    apply,
    async listen(inbox, wake, hears = () => undefined) {
      checkUsable();
      return hints.listen(channelsBegin + inbox, wake, hears);
    },
    async read(key) {
      checkUsable();
      return viewOf(key, await look([key]), 0);
    },
    async *list(query) {
      checkUsable();
      let left = query.limit ?? Number.POSITIVE_INFINITY;
      if (left <= 0) return;
      const found = await keysListed(connection, keysBegin, query);
      for (let from = 0; from < found.length; from += CALL_MAX) {
        for (const view of await viewsOf(found.slice(from, from + CALL_MAX))) {
          yield view;
          left -= 1;
          if (left <= 0) return;
        }
      }
    },
    async probe() {
      checkUsable();
      return probe(connection, channelsBegin, hints.trouble());
    },
    async close() {
      if (closed) return;
      closed = true;
      await hints.close();
    },
  };
}

/** Indexes of the commands, call by call. All commands of a key are in the call that has its first one. */
function inCalls(commands: readonly Command[], isCluster: boolean): readonly (readonly number[])[] {
  const calls: number[][] = [];
  const callOf = new Map<string, number[]>();
  const open: { renewals: number[]; others: number[] } = { renewals: [], others: [] };
  commands.forEach(({ key, kind }, index) => {
    const known = callOf.get(key);
    if (known) {
      known.push(index);
      return;
    }
    const lane = kind === 'renew' ? 'renewals' : 'others';
    const most = lane === 'renewals' ? RENEWALS_MAX : CALL_MAX;
    if (isCluster || open[lane].length === 0 || open[lane].length >= most) {
      open[lane] = [];
      calls.push(open[lane]);
    }
    open[lane].push(index);
    callOf.set(key, open[lane]);
  });
  return calls;
}
