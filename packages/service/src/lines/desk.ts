/**
 * Speaks to the store for the whole service. All that has to be said at one moment travels in one `apply`, renewals
 * first (F14). Whatever somebody awaits here is bounded in time: no request hangs because a store does.
 */
import { type Store, UnsupportedError } from 'holdfast';
import {
  type Command,
  type HoldId,
  KEEP_MS,
  type ListQuery,
  type Reply,
  type Snapshot,
} from 'holdfast/protocol';
import { after, monotonicMs, soon } from '../clock.js';
import type { ServiceEventDetails, ServiceEvents } from '../service-events.js';
import { answered, isAnswerTo, PATIENCE_MS, unanswered } from './answers.js';
import { concealer } from './concealment.js';
import { type Speaker, Talk } from './talk.js';

const BATCH_MAX = 512;
/** While the store is away: what was claimed longest ago is the first to expire by itself. */
const FAREWELLS_MAX = 10_000;
/** After so long with listed locks others have their turn. */
const LISTING_MS_MAX = 2;

interface Outgoing {
  readonly command: Command;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (cause: unknown) => void;
}

export class Desk {
  readonly store: Store;
  readonly #events: ServiceEvents;
  readonly #farewells = new Set<Talk>();
  #renewals: Outgoing[] = [];
  #others: Outgoing[] = [];
  #scheduled = false;
  #onQuiet: (() => void) | null = null;

  constructor(store: Store, events: ServiceEvents) {
    this.store = store;
    this.#events = events;
  }

  /** One attempt. A rejection means that nobody knows what happened, or an `UnsupportedError`. */
  readonly send = (command: Command): Promise<Reply> => {
    return new Promise((resolve, reject) => {
      const lane = command.kind === 'renew' ? this.#renewals : this.#others;
      lane.push({ command, resolve, reject });
      if (this.#scheduled) return;
      this.#scheduled = true;
      soon(() => this.#flush());
    });
  };

  /** Says it until it is answered, or stopped. */
  say(command: Command, ttlMs: number, speaker: Speaker): Talk {
    return new Talk(this.send, command, ttlMs, speaker);
  }

  /** The answer; a `StoreError` when none came in time, and then nobody knows what happened. */
  ask(command: Command, withinMs = PATIENCE_MS): Promise<Reply> {
    return new Promise((resolve, reject) => {
      let cause: unknown;
      const cancel = after(withinMs, () => {
        talk.stop();
        reject(unanswered(command.kind, command.key, cause));
      });
      const talk = this.say(command, 4 * PATIENCE_MS, {
        onReply: (reply) => {
          cancel();
          resolve(reply);
        },
        onUnknown: (trouble) => {
          cause = trouble;
        },
        onRefused: (error) => {
          cancel();
          reject(error);
        },
      });
    });
  }

  /**
   * One attempt each, in this order, for those who ask again by themselves. Each settles alone, with a `StoreError` when
   * nothing is known of it.
   */
  attempt(commands: readonly Command[]): readonly Promise<Reply>[] {
    const outgoing: Outgoing[] = [];
    const replies = commands.map((command) => {
      const reply = new Promise<Reply>((resolve, reject) => {
        outgoing.push({ command, resolve, reject });
      });
      return answered(reply, command.kind, command.key);
    });
    if (outgoing.length > 0) this.#apply(outgoing);
    return replies;
  }

  read(key: string): Promise<Snapshot | null> {
    return this.look(key, async () => this.store.read(key));
  }

  /** Asks the store for one key, in a way of its own. */
  look<T>(key: string, ask: () => Promise<T>): Promise<T> {
    return this.#bounded('read', 'read', key, ask);
  }

  /** Writes to the store in a way of its own, once: a rejection means that nobody knows what happened. */
  write<T>(what: string, key: string, ask: () => Promise<T>): Promise<T> {
    return this.#bounded('apply', what, key, ask);
  }

  /** The tokens of all who hold this key. */
  readonly tokensOf = async (key: string): Promise<readonly number[]> => {
    const snapshot = await this.read(key);
    return (snapshot?.holders ?? []).map(({ token }) => token);
  };

  /** One by one, in the order of their keys, until `take` says no. Rejects in time, and then takes no more. */
  each(query: ListQuery, take: (snapshot: Snapshot) => boolean): Promise<void> {
    let isAwaited = true;
    const look = this.#bounded('list', 'list', undefined, () =>
      feed(this.store, query, (snapshot) => isAwaited && take(snapshot)),
    );
    return look.finally(() => {
      isAwaited = false;
    });
  }

  probe(): ReturnType<Store['probe']> {
    return this.#bounded('probe', 'probe', undefined, async () => this.store.probe());
  }

  /** Takes back a claim that nobody waits for any more, in the background: a late grant is given back (F5). */
  withdraw(key: string, hold: HoldId, ttlMs: number): void {
    const untilMs = monotonicMs() + ttlMs + KEEP_MS;
    const done = (): void => {
      talk.stop();
      this.#farewells.delete(talk);
      if (this.#farewells.size === 0) this.#onQuiet?.();
      this.#events.emit('touched', { key });
    };
    const talk = this.say({ kind: 'release', key, hold, minHoldMs: 0 }, ttlMs, {
      onReply: done,
      onRefused: done,
      onUnknown: () => {
        if (monotonicMs() >= untilMs) done();
      },
    });
    this.#farewells.add(talk);
    const [oldest] = this.#farewells;
    if (this.#farewells.size <= FAREWELLS_MAX || !oldest) return;
    oldest.stop();
    this.#farewells.delete(oldest);
  }

  /** Resolves when every withdrawal was answered, or after so long; then nothing more is said. */
  async close(withinMs: number): Promise<void> {
    if (this.#farewells.size > 0) {
      await new Promise<void>((resolve) => {
        const cancel = after(withinMs, resolve);
        this.#onQuiet = () => {
          cancel();
          resolve();
        };
      });
    }
    for (const talk of this.#farewells) talk.stop();
  }

  async #bounded<T>(
    operation: ServiceEventDetails['store']['operation'],
    what: string,
    key: string | undefined,
    ask: () => Promise<T>,
  ): Promise<T> {
    const sinceMs = monotonicMs();
    const commands = operation === 'apply' ? 1 : 0;
    const tell = (ok: boolean): void => {
      this.#events.emit('store', { operation, commands, durationMs: monotonicMs() - sinceMs, ok });
    };
    try {
      const answer = await answered(ask(), what, key);
      tell(true);
      return answer;
    } catch (error) {
      tell(false);
      throw error;
    }
  }

  #flush(): void {
    const due = this.#renewals.length > 0 ? this.#renewals.concat(this.#others) : this.#others;
    this.#renewals = [];
    this.#others = [];
    this.#scheduled = false;
    for (let from = 0; from < due.length; from += BATCH_MAX) this.#apply(due.slice(from, from + BATCH_MAX));
  }

  #apply(batch: readonly Outgoing[]): void {
    const sinceMs = monotonicMs();
    let left = batch.length;
    let ok = true;
    const settled = (answered: boolean): void => {
      ok &&= answered;
      left -= 1;
      if (left > 0) return;
      const durationMs = monotonicMs() - sinceMs;
      this.#events.emit('store', { operation: 'apply', commands: batch.length, durationMs, ok });
    };
    const commands = batch.map(({ command }) => command);
    const conceal = concealer(commands);
    try {
      const replies = this.store.apply(commands);
      batch.forEach(({ command, resolve, reject }, index) => {
        const fail = (cause: unknown): void => {
          settled(cause instanceof UnsupportedError);
          reject(conceal(cause));
        };
        const hear = (reply: Reply): void => {
          if (isAnswerTo(command, reply)) {
            settled(true);
            resolve(reply);
          } else fail(new Error('The store answered something that is no reply.'));
        };
        const reply = replies[index];
        if (reply) reply.then(hear, fail);
        else fail(new Error('The store left a command unanswered.'));
      });
    } catch (cause) {
      for (const { reject } of batch) {
        settled(false);
        reject(conceal(cause));
      }
    }
  }
}

async function feed(store: Store, query: ListQuery, take: (snapshot: Snapshot) => boolean): Promise<void> {
  let sinceMs = monotonicMs();
  for await (const snapshot of store.list(query)) {
    if (!take(snapshot)) return;
    if (monotonicMs() - sinceMs < LISTING_MS_MAX) continue;
    // A store in this process gives all of them at once: renewals are not to wait until it has.
    await new Promise<void>(soon);
    sinceMs = monotonicMs();
  }
}
