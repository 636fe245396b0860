/**
 * Locks in Redis: one server, one behind Sentinel, or a Cluster.
 *
 * Layout: one Redis key per lock, named by the prefix and the lock's key. Its value is the whole state in one string of
 * bytes (see lua/layout.ts). Every write sets a time to live by the rule of `expendableAt`, so unused records expire. On
 * a Cluster each key is on one server: there is no CROSSSLOT.
 *
 * Atomic: a script decides inside Redis, which runs nothing else meanwhile. A batch is one call, split so that no call
 * blocks the server for long; on a Cluster it is one call per key, all sent at once, each settling alone. Commands of
 * one key are always in one call, in order.
 *
 * Clock: the server's, by TIME inside the script. On a Cluster each key has the clock of its server.
 *
 * Wake-ups are published by the script, after the write, to one channel per inbox. On a Cluster too they are plain
 * publications: a sharded one to a channel of another server would fail after the write.
 *
 * A lost reply: the command may have been executed or not, and the engine sends it again. Commands that a client sends
 * late or twice do no harm: the hold is the same. A crash loses the changes that were not on disk, a failover those that
 * had not reached the replica; `probe` reports both.
 *
 * The store never waits, retries or sets a timer; the clients reconnect by themselves.
 */
import {
  type Command,
  InvalidArgumentError,
  type ListQuery,
  type Reply,
  type Snapshot,
  type Store,
  snapshotOf,
  type Traits,
  UnsupportedError,
} from '../../protocol/index.js';
import { checkOptionNames } from '../../protocol/option-names.js';
import { firstOf } from '../clients/listed.js';
import { checkClient, connectionTo, type RedisClient, subscriberOn } from './clients.js';
import { type Answers, answersOf, isForeignAt, replyOf } from './codec.js';
import { commandEncoder, encodeReads } from './encoder.js';
import { scanKeys } from './key-scan.js';
import { probe } from './probe.js';
import { SCRIPT, scriptCall } from './script.js';
import { storedState } from './stored-state.js';
import { wakeListener } from './wake-listener.js';

/** Options of `redisStore`. */
export interface RedisStoreOptions {
  /** The prefix of all keys and channels. Default 'holdfast:'. The same for all processes that share locks. */
  readonly prefix?: string;
  /** A connected client for listening, instead of a connection that the store opens. The store does not close it. Default none. */
  readonly subscriber?: RedisClient;
}

const TRAITS: Traits = {
  clock: 'store',
  clockErrorMs: 0,
  push: true,
  queue: true,
  shared: 'network',
  durable: false,
  livenessPollMs: null,
};

/** Commands per call. With a batch split in two, client and server work at the same time. */
const CALL_MAX = 32;
/**
 * Renewals per call. No caller waits for them, and thousands may be due at once: fewer calls, of a millisecond or two.
 */
const RENEWALS_MAX = 256;

/** Makes a store on a client, which it never closes. For listening, it opens one connection like the client's. */
export function redisStore(client: RedisClient, options: RedisStoreOptions = {}): Store {
  checkOptionNames(options, ['prefix', 'subscriber']);
  const { prefix = 'holdfast:', subscriber } = options;
  if (typeof prefix !== 'string' || prefix === '') {
    throw new InvalidArgumentError('The prefix has to be a non-empty text, such as "holdfast:".');
  }
  const connection = connectionTo(client);
  if (subscriber !== undefined) checkClient(subscriber, 'subscriber');
  if (subscriber === client) {
    throw new InvalidArgumentError(
      'The subscriber has to be another client: a connection that listens cannot send commands. ' +
        'Pass a duplicate of the client, or leave it out.',
    );
  }
  const keyPrefix = connection.keyPrefix + prefix;
  const channelPrefix = `${keyPrefix}inbox:`;
  const run = scriptCall(connection, SCRIPT);
  const encode = commandEncoder(channelPrefix);
  const wakes = wakeListener(
    (onMessage, onListening) =>
      subscriber
        ? subscriberOn(subscriber, onMessage, onListening)
        : connection.subscriber(onMessage, onListening),
    keyPrefix,
  );
  let closed = false;

  function checkUsable(): void {
    if (closed) throw new UnsupportedError('This Redis store is closed.');
    connection.checkUsable();
  }

  /** Sends these commands in one call. */
  function call<T>(commands: readonly Command[], decode: (answers: Answers) => T): Promise<T> {
    const keys = commands.map(({ key }) => prefix + key);
    return run(keys, encode(commands), (reply) => decode(answersOf(reply, keys.length)));
  }

  function replyTo(command: Command, answers: Answers, index: number): Reply {
    return replyOf(answers, index, command, keyPrefix);
  }

  function applyInCall(commands: readonly Command[]): readonly Promise<Reply>[] {
    const [command] = commands;
    if (command && commands.length === 1) return [call(commands, (answers) => replyTo(command, answers, 0))];
    const answered = call(commands, (answers) => answers);
    return commands.map((command, index) => answered.then((answers) => replyTo(command, answers, index)));
  }

  function apply(commands: readonly Command[]): readonly Promise<Reply>[] {
    try {
      checkUsable();
      const isOneCall = commands.length === 1 || (commands.length <= CALL_MAX && !connection.isCluster);
      if (isOneCall && commands.length > 0) return applyInCall(commands);
      const replies: Promise<Reply>[] = [];
      for (const indexes of inCalls(commands, connection.isCluster)) {
        applyInCall(indexes.map((index) => commands[index] as Command)).forEach((reply, place) => {
          replies[indexes[place] as number] = reply;
        });
      }
      return replies;
    } catch (error) {
      // Nothing was sent.
      return commands.map(() => Promise.reject(error));
    }
  }

  /** The stored records of these keys. */
  function readRecords(keys: readonly string[]): Promise<Answers> {
    return run(
      keys.map((key) => prefix + key),
      [encodeReads(keys.length)],
      (reply) => answersOf(reply, keys.length),
    );
  }

  function snapshot(key: string, answers: Answers, index: number): Snapshot | null {
    return snapshotOf(key, storedState(answers, index, key, keyPrefix + key), answers.now);
  }

  /** The keys of each call, with its answers. */
  function readTogether(
    keys: readonly string[],
  ): Promise<readonly (readonly [page: readonly string[], Answers])[]> {
    const pages = connection.isCluster ? keys.map((key) => [key]) : [keys];
    return Promise.all(pages.map(async (page) => [page, await readRecords(page)] as const));
  }

  async function* snapshots(query: ListQuery): AsyncGenerator<Snapshot | null> {
    const keys = await scanKeys(connection, keyPrefix, query);
    for (let from = 0; from < keys.length; from += CALL_MAX) {
      checkUsable();
      for (const [page, answers] of await readTogether(keys.slice(from, from + CALL_MAX))) {
        for (const [index, key] of page.entries()) {
          // A list leaves out keys that are not locks; a command on one fails.
          yield isForeignAt(answers, index) ? null : snapshot(key, answers, index);
        }
      }
    }
  }

  return {
    name: 'redis',
    traits: TRAITS,
    apply,
    async listen(inbox, onWake, onListening = () => undefined) {
      checkUsable();
      return wakes.listen(channelPrefix + inbox, onWake, onListening);
    },
    async read(key) {
      checkUsable();
      return snapshot(key, await readRecords([key]), 0);
    },
    async *list(query) {
      checkUsable();
      yield* firstOf(snapshots(query), query.limit);
    },
    async probe() {
      checkUsable();
      return probe(connection, channelPrefix, wakes.error());
    },
    async close() {
      if (closed) return;
      closed = true;
      await wakes.close();
    },
  };
}

/** The indexes of the commands of each call. All commands of a key are in the call of its first one. */
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
