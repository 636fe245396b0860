/**
 * A batch of commands as one transaction. First everything is decided, then what changed is written: a command that
 * cannot be decided fails alone, and an error of SQLite's own undoes them all.
 */
import {
  type Command,
  type Decision,
  decide,
  type HoldId,
  type Reply,
  type State,
} from '../../protocol/index.js';
import { BUSY_MS, immediately, resultCode, SQLITE_BUSY, type SqliteDatabase } from './database.js';
import type { Hint } from './inbox-file.js';
import { ALIVE, type Fates, type Liveness } from './liveness.js';
import type { Records } from './records.js';

export type Outcome = { readonly reply: Reply } | { readonly error: unknown };

export interface Batch {
  /** One a command, in order. */
  readonly outcomes: readonly Outcome[];
  /** By inbox, to be delivered now that all is committed. */
  readonly hints: ReadonlyMap<string, readonly Hint[]>;
  /** Holds of other processes that this one stands behind from now on. */
  readonly adopted: readonly HoldId[];
}

export interface BatchParts {
  readonly database: SqliteDatabase;
  readonly records: Records;
  /** Null where nobody can be proven gone. */
  readonly liveness: Liveness | null;
  now(): number;
}

/** How many records that may go each written one takes with it. */
const CLEANUP_PER_CHANGE = 2;
/** How long to wait once it was in vain: somebody is stopped in the middle of writing, and this process has other work. */
const BUSY_AGAIN_MS = 2;

export function batches(parts: BatchParts): (commands: readonly Command[]) => Batch {
  const { database, liveness } = parts;
  let stuck = false;

  /** Waits for others a while, but not over and over: the event loop stands still meanwhile. */
  function waiting<T>(work: () => T): T {
    try {
      const result = work();
      if (stuck) database.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
      stuck = false;
      return result;
    } catch (error) {
      if (!stuck && resultCode(error) === SQLITE_BUSY) {
        stuck = true;
        database.exec(`PRAGMA busy_timeout = ${BUSY_AGAIN_MS}`);
      }
      throw error;
    }
  }

  return (commands) => {
    const newcomers = liveness ? strangers(commands, liveness) : [];
    const batch = waiting(() =>
      immediately(database, () => {
        for (const name of newcomers) liveness?.introduce(name);
        return decideAll(parts, commands, new Map(newcomers.map((name) => [name, ALIVE])));
      }),
    );
    liveness?.accept(newcomers, batch.adopted);
    return batch;
  };
}

/** Whoever claims and was not met yet. */
function strangers(commands: readonly Command[], liveness: Liveness): readonly string[] {
  const names = new Set<string>();
  for (const command of commands) {
    if (command.kind !== 'claim') continue;
    if (!liveness.isOwn(command.hold.process)) names.add(command.hold.process);
  }
  return [...names];
}

function decideAll(
  { records, liveness, now }: BatchParts,
  commands: readonly Command[],
  fates: Fates,
): Batch {
  const states = new Map<string, State | null>();
  const changed = new Map<string, State>();
  const hints = new Map<string, Hint[]>();
  const adopted: HoldId[] = [];
  const at = now();

  function decideOne(command: Command): Reply {
    const { key } = command;
    const stored = states.get(key) ?? records.load(key);
    const state = stored && liveness ? liveness.buryGone(stored, at, fates) : stored;
    const decision = decide(state, command, at);
    states.set(key, decision.state);
    if (decision.changed) changed.set(key, decision.state);
    addHints(hints, key, decision);
    if (liveness) noteHands(command, decision.reply, liveness, adopted);
    return decision.reply;
  }

  const outcomes = commands.map((command): Outcome => {
    try {
      return { reply: decideOne(command) };
    } catch (error) {
      if (resultCode(error) !== null) throw error;
      return { error };
    }
  });
  for (const [key, state] of changed) records.save(key, state);
  if (changed.size > 0) records.cleanUp(at, changed.size * CLEANUP_PER_CHANGE);
  return { outcomes, hints, adopted };
}

/** Whoever renews what another process took, or what it handed off itself, stands behind it from then on. */
function noteHands(command: Command, reply: Reply, liveness: Liveness, adopted: HoldId[]): void {
  if (command.kind === 'renew' && reply.kind === 'renewed' && !liveness.standsBehind(command.hold)) {
    liveness.adopt(command.hold);
    adopted.push(command.hold);
  } else if (command.kind === 'release' || (command.kind === 'renew' && reply.kind === 'lost')) {
    liveness.ended(command.hold);
  }
}

function addHints(hints: Map<string, Hint[]>, key: string, { wakes }: Decision): void {
  for (const { inbox, why } of wakes) {
    const those = hints.get(inbox) ?? [];
    those.push({ key, why });
    hints.set(inbox, those);
  }
}
