/**
 * A store behind an unreliable network, from a seed: commands and replies lost, late, doubled and overtaken, calls that
 * hang or throw, wake-ups lost, late and doubled. It never invents a reply.
 */
import { type Clock, systemClock } from '../clock.js';
import type { Command, Reply, Stop, Store, Why } from '../protocol/index.js';
import { pause } from './pause.js';
import { seededRandom } from './random.js';
import { membersOf } from './store-members.js';

/** What may happen to a command or a wake-up. */
export type Fault =
  /** The command never arrives; the call rejects after a while. */
  | 'commandLost'
  /** The command arrives; the call still rejects after a while. */
  | 'replyLost'
  | 'commandLate'
  | 'replyLate'
  /** The command arrives, and once more later. */
  | 'doubled'
  /** The command arrives only after a later one did, or after a while. */
  | 'overtaken'
  /** The call never settles; half of these commands arrive. */
  | 'hung'
  /** The call fails at once and nothing is sent. */
  | 'throwing'
  | 'hintLost'
  | 'hintLate'
  | 'hintDoubled';

/** Options of `faultyStore`. */
export interface FaultyStoreOptions {
  /** Repeats the same faults. */
  readonly seed: number;
  /** The probability of each fault, from 0 to 1. A command or a wake-up has at most one. */
  readonly faults: { readonly [F in Fault]?: number };
  /** The longest delay. Default 200 ms. */
  readonly lateMsMax?: number;
  /** Default: the clock of this machine. */
  readonly clock?: Clock;
}

/** A store whose commands and wake-ups suffer faults. */
export interface FaultyStore extends Store {
  /** How often each fault happened so far. */
  readonly struck: ReadonlyMap<Fault, number>;
  /** Ends all faults; delayed commands still arrive. */
  heal(): void;
}

const COMMAND_FAULTS = [
  'commandLost',
  'replyLost',
  'commandLate',
  'replyLate',
  'doubled',
  'overtaken',
  'hung',
  'throwing',
] as const satisfies readonly Fault[];

const HINT_FAULTS = ['hintLost', 'hintLate', 'hintDoubled'] as const satisfies readonly Fault[];

type CommandFault = (typeof COMMAND_FAULTS)[number];

/** Wraps a store so that commands, replies and wake-ups are lost, late or doubled, repeatably by seed. */
export function faultyStore(inner: Store, options: FaultyStoreOptions): FaultyStore {
  const { clock = systemClock, faults, lateMsMax = 200 } = options;
  const random = seededRandom(options.seed);
  const struck = new Map<Fault, number>();
  let overtaken: (() => void)[] = [];
  let healed = false;

  /** Draws exactly once, so that a seed repeats. */
  function strike<F extends Fault>(candidates: readonly F[]): F | null {
    let draw = random.next();
    if (healed) return null;
    for (const fault of candidates) {
      draw -= faults[fault] ?? 0;
      if (draw >= 0) continue;
      struck.set(fault, (struck.get(fault) ?? 0) + 1);
      return fault;
    }
    return null;
  }

  const late = (): Promise<void> => pause(random.next() * lateMsMax, clock);

  async function send(command: Command): Promise<Reply> {
    const [reply] = inner.apply([command]);
    if (!reply) throw new Error(`The store "${inner.name}" gave no promise for its command.`);
    return await reply;
  }

  /** Sends without waiting for the reply. */
  function sendUnheard(command: Command): void {
    void Promise.allSettled(inner.apply([command]));
  }

  function letPass(): void {
    const waiting = overtaken;
    overtaken = [];
    for (const go of waiting) go();
  }

  async function sendThrough(fault: CommandFault, command: Command): Promise<Reply> {
    const reset = (): Error =>
      new Error(`The connection was reset (${fault}, planted by seed ${options.seed}).`);
    switch (fault) {
      case 'throwing':
        throw reset();
      case 'commandLost':
        await late();
        throw reset();
      case 'replyLost':
        sendUnheard(command);
        await late();
        throw reset();
      case 'commandLate':
        await late();
        return await send(command);
      case 'replyLate': {
        const [reply] = await Promise.all([send(command), late()]);
        return reply;
      }
      case 'doubled':
        void late().then(() => sendUnheard(command));
        return await send(command);
      case 'overtaken':
        await Promise.race([late(), new Promise<void>((go) => overtaken.push(go))]);
        return await send(command);
      case 'hung':
        if (random.chance(0.5)) sendUnheard(command);
        return await new Promise<never>(() => undefined);
    }
  }

  /** Commands without a fault travel in one batch, as they would without this wrapper. */
  function apply(commands: readonly Command[]): readonly Promise<Reply>[] {
    const drawn = commands.map(() => strike(COMMAND_FAULTS));
    const through = inner.apply(commands.filter((_, index) => drawn[index] === null));
    let sent = 0;
    const replies = commands.map((command, index) => {
      const fault = drawn[index] ?? null;
      const reply = fault === null ? through[sent++] : sendThrough(fault, command);
      return reply ?? Promise.reject(new Error(`The store "${inner.name}" gave too few promises.`));
    });
    if (through.length > 0) letPass();
    return replies;
  }

  function listen(
    inbox: string,
    wake: (key: string, why: Why) => void,
    onListening?: (isListening: boolean) => void,
  ): Promise<Stop> {
    if (!inner.listen) return Promise.reject(new Error(`The store "${inner.name}" does not push.`));
    const hear = (key: string, why: Why): void => {
      const fault = strike(HINT_FAULTS);
      if (fault === 'hintLost') return;
      if (fault !== 'hintLate') wake(key, why);
      if (fault !== null) void late().then(() => wake(key, why));
    };
    return inner.listen(inbox, hear, onListening);
  }

  return {
    ...membersOf(inner),
    name: `faulty ${inner.name}`,
    struck,
    apply,
    ...(inner.listen && { listen }),
    heal() {
      healed = true;
      letPass();
    },
  };
}
