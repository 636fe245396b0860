/** A `Store` as one simulated process sees it: the shared server behind an unreliable network. */
import {
  type Command,
  type Guarantees,
  type HoldId,
  keysInOrder,
  type ListQuery,
  type Reply,
  type Snapshot,
  type Stop,
  type Store,
  type Traits,
  type Why,
} from './library.js';
import type { Link } from './network.js';
import type { Schedule } from './schedule.js';
import type { Server, StoreView } from './server.js';

/** The share of unanswered requests that fail after a while; the others never settle. */
const FAILS_SHARE = 0.5;
const FAILS_MS = [1, 400] as const;
/** How often the replies of one batch arrive one by one. */
const APART_SHARE = 0.2;

/** How often `listen` fails. */
const LISTEN_FAILS_SHARE = 0.1;

export type Variant = Pick<Traits, 'push' | 'queue'>;

class PendingReply<T> {
  readonly promise: Promise<T>;
  resolve: (value: T) => void = () => {};
  reject: (error: Error) => void = () => {};

  constructor() {
    this.promise = new Promise<T>((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }
}

export interface ConnectionParts {
  readonly server: Server;
  readonly link: Link;
  readonly schedule: Schedule;
  readonly variant: Variant;
  /** Called for every wake-up that the process received. */
  readonly onWakeUp: (key: string, why: Why) => void;
  /** Called for every hold that the process claims. */
  readonly onHold: (hold: HoldId) => void;
}

/** Settles pending replies with an error after a while, or never. */
type Fail = (answers: readonly Pick<PendingReply<unknown>, 'reject'>[], surely: boolean) => void;

function failuresOver({ link, schedule }: Pick<ConnectionParts, 'link' | 'schedule'>): Fail {
  const { random } = link;
  return (answers, surely) => {
    if (!surely && !random.chance(FAILS_SHARE)) return;
    const error = new Error('The connection was reset.');
    schedule.after(random.scaled(FAILS_MS), () =>
      link.process.deliver(() => answers.forEach((answer) => void answer.reject(error))),
    );
  };
}

/** The way to one server of several. */
export interface Way {
  isCut(): boolean;
  /** The server handles a request, now or later or never. */
  receive(handle: () => void): void;
}

const DIRECT: Way = { isCut: () => false, receive: (handle) => handle() };

/** `work` is told whether the request arrived before. */
export type Ask = <T>(keys: readonly string[], work: (isOnce: boolean) => T, way: Way) => Promise<T>;

/** Sends a request over a way; the reply travels back over the same. `surely`: a request whose reply is lost never hangs. */
export function answersOver(parts: Pick<ConnectionParts, 'link' | 'schedule'>, surely = false): Ask {
  const { link } = parts;
  const fail = failuresOver(parts);
  return (keys, work, way) => {
    const answer = new PendingReply<ReturnType<typeof work>>();
    let isOnce = true;
    const arrived = (): void =>
      way.receive(() => {
        const value = work(isOnce);
        isOnce = false;
        const isLost = way.isCut() || link.carry('reply', keys, () => answer.resolve(value)) === 'lost';
        if (isLost) fail([answer], surely);
      });
    const isLost = way.isCut() || link.carry('request', keys, arrived) === 'lost';
    if (isLost) fail([answer], surely);
    return answer.promise;
  };
}

export function listenOver({
  server,
  link,
  schedule,
  onWakeUp,
}: Pick<ConnectionParts, 'link' | 'schedule' | 'onWakeUp'> & { readonly server: StoreView }) {
  const { random } = link;
  return async (inbox: string, wake: (key: string, why: Why) => void): Promise<Stop> => {
    let listening = true;
    const receive = (key: string, why: Why): void => {
      link.carry('wake-up', [key], () => {
        if (!listening) return;
        wake(key, why);
        onWakeUp(key, why);
      });
    };
    const fails = !link.faultFree && (link.isCut || random.chance(LISTEN_FAILS_SHARE));
    link.cannotListen = true;
    await new Promise<void>((resolve) => {
      schedule.after(2 * link.latencyMs(), () => link.process.deliver(resolve));
    });
    if (fails) throw new Error('The store could not be listened to.');
    link.cannotListen = false;
    link.note(server.states.keys());
    server.listen(inbox, receive);
    return async () => {
      listening = false;
      server.stopListening(inbox);
    };
  };
}

export function connect(parts: ConnectionParts): Store {
  const { server, link, variant, onHold } = parts;
  const { random } = link;
  const fail = failuresOver(parts);
  const ask = answersOver(parts, true);
  const listen = listenOver(parts);

  function apply(commands: readonly Command[]): readonly Promise<Reply>[] {
    const keys = commands.map(({ key }) => key);
    for (const command of commands) if (command.kind === 'claim') onHold(command.hold);
    const answers = commands.map(() => new PendingReply<Reply>());
    let isCopy = false;
    const arrived = (): void => {
      const replies = commands.map((command) => server.decide(command, isCopy));
      isCopy = true;
      const settle = (from: number, to: number): void => {
        const some = answers.slice(from, to);
        const arrive = (): void =>
          some.forEach((answer, at) => {
            answer.resolve(replies[from + at] as Reply);
          });
        if (link.carry('reply', keys.slice(from, to), arrive) === 'lost') fail(some, false);
      };
      if (commands.length === 1 || !random.chance(APART_SHARE)) settle(0, commands.length);
      else for (let at = 0; at < commands.length; at++) settle(at, at + 1);
    };
    if (link.carry('request', keys, arrived) === 'lost') fail(answers, false);
    return answers.map(({ promise }) => promise);
  }

  async function* list(query: ListQuery): AsyncIterable<Snapshot> {
    const snapshots = keysInOrder(server.states.keys(), query).flatMap((key) => server.read(key) ?? []);
    yield* snapshots.slice(0, query.limit);
  }

  return {
    name: 'simulated',
    traits: {
      clock: 'store',
      clockErrorMs: 0,
      shared: 'network',
      durable: true,
      livenessPollMs: null,
      ...variant,
    },
    apply,
    ...(variant.push ? { listen } : {}),
    read: (key) => ask([key], () => server.read(key), DIRECT),
    list,
    probe(): Promise<Guarantees> {
      return Promise.resolve({ server: 'simulated', now: server.now, findings: [] });
    },
    async close() {},
  };
}
