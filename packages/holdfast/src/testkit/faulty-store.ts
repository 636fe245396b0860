/**
 * A store with a bad network before it, from a seed: commands and replies lost, late, doubled and overtaken, calls
 * that hang or throw, hints lost, late and doubled. It never invents a reply: what it answers, the store said.
 */
import { type Clock, systemClock } from '../clock.js';
import type { Command, Reply, Stop, Store, Why } from '../protocol/index.js';
import { pause } from './pause.js';
import { seededRandom } from './random.js';

/** What may befall a command or a hint on its way. */
export type Fault =
  /** The command never arrives; the call rejects after a while. */
  | 'commandLost'
  /** The command goes through; the call rejects after a while all the same. */
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

export interface FaultyStoreOptions {
  readonly seed: number;
  /** How likely each fault is, from 0 to 1. Those of commands, and those of hints, exclude each other. */
  readonly faults: { readonly [F in Fault]?: number };
  /** How late is late, at most. 200 ms unless told. */
  readonly lateMsMax?: number;
  readonly clock?: Clock;
}

export interface FaultyStore extends Store {
  /** How often each fault struck so far. */
  readonly struck: ReadonlyMap<Fault, number>;
  /** From now on everything goes through; what is late still comes. */
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

export function faultyStore(inner: Store, options: FaultyStoreOptions): FaultyStore {
  const { clock = systemClock, faults, lateMsMax = 200 } = options;
  const random = seededRandom(options.seed);
  const struck = new Map<Fault, number>();
  let overtaken: (() => void)[] = [];
  let healed = false;

  /** Draws once whatever comes of it, so that a seed repeats. */
  function strike<F extends Fault>(candidates: readonly F[]): F | null {
    let dice = random.next();
    if (healed) return null;
    for (const fault of candidates) {
      dice -= faults[fault] ?? 0;
      if (dice >= 0) continue;
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

  /** Nobody waits for what comes of it. */
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

  /** What goes through travels in one batch, as it would without the faults. */
  function apply(commands: readonly Command[]): readonly Promise<Reply>[] {
    const fates = commands.map(() => strike(COMMAND_FAULTS));
    const through = inner.apply(commands.filter((_, index) => fates[index] === null));
    let sent = 0;
    const replies = commands.map((command, index) => {
      const fault = fates[index] ?? null;
      const reply = fault === null ? through[sent++] : sendThrough(fault, command);
      return reply ?? Promise.reject(new Error(`The store "${inner.name}" gave too few promises.`));
    });
    if (through.length > 0) letPass();
    return replies;
  }

  function listen(
    inbox: string,
    wake: (key: string, why: Why) => void,
    hears?: (hearing: boolean) => void,
  ): Promise<Stop> {
    if (!inner.listen) return Promise.reject(new Error(`The store "${inner.name}" does not push.`));
    const hear = (key: string, why: Why): void => {
      const fault = strike(HINT_FAULTS);
      if (fault === 'hintLost') return;
      if (fault !== 'hintLate') wake(key, why);
      if (fault !== null) void late().then(() => wake(key, why));
    };
    return inner.listen(inbox, hear, hears);
  }

  return {
    ...inner,
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
