/**
 * A batch of commands as one transaction: decide everything, then write what changed. A command that cannot be decided
 * fails alone; an error of SQLite undoes them all.
 */
import { type Command, decide, type HoldId, type Reply, type State } from '../../protocol/index.js';
import { groupedBy } from '../clients/grouped.js';
import { BUSY_MS, immediately, resultCode, SQLITE_BUSY, type SqliteDatabase } from './database.js';
import type { WakeUp } from './inbox-file.js';
import { ALIVE, type Findings, type Liveness } from './liveness.js';
import type { Records } from './records.js';

export type Outcome = { readonly reply: Reply } | { readonly error: unknown };

export interface Batch {
  /** One per command, in order. */
  readonly outcomes: readonly Outcome[];
  /** Per inbox; to be delivered after the commit. */
  readonly wakeUps: ReadonlyMap<string, readonly WakeUp[]>;
  /** Holds of other processes that this process has adopted. */
  readonly adopted: readonly HoldId[];
}

export interface BatchParts {
  readonly database: SqliteDatabase;
  readonly records: Records;
  /** Null if no process can be proven gone. */
  readonly liveness: Liveness | null;
  now(): number;
}

/** Expired records deleted per written record. */
const CLEANUP_PER_CHANGE = 2;
/** How long to wait after a first wait without success: another process is stopped in the middle of a write. */
const BUSY_AGAIN_MS = 2;

export function batches(parts: BatchParts): (commands: readonly Command[]) => Batch {
  const { database, liveness } = parts;
  let stuck = false;

  /** Waits for other writers once, not repeatedly: the event loop is blocked meanwhile. */
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
    const newcomers = liveness ? firstClaimants(commands, liveness) : [];
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

/** Processes that claim for the first time. */
function firstClaimants(commands: readonly Command[], liveness: Liveness): readonly string[] {
  const claimants = commands.flatMap((command) => (command.kind === 'claim' ? command.hold.process : []));
  return [...new Set(claimants)].filter((process) => !liveness.isOwn(process));
}

function decideAll(
  { records, liveness, now }: BatchParts,
  commands: readonly Command[],
  findings: Findings,
): Batch {
  const states = new Map<string, State | null>();
  const changed = new Map<string, State>();
  const wakeUps: (WakeUp & { readonly inbox: string })[] = [];
  const adopted: HoldId[] = [];
  const at = now();

  function decideOne(command: Command): Reply {
    const { key } = command;
    const stored = states.get(key) ?? records.load(key);
    const state = stored && liveness ? liveness.expireGone(stored, at, findings) : stored;
    const decision = decide(state, command, at);
    states.set(key, decision.state);
    if (decision.changed) changed.set(key, decision.state);
    for (const { inbox, why } of decision.wakes) wakeUps.push({ inbox, key, why });
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
  return { outcomes, wakeUps: groupedBy(wakeUps, ({ inbox }) => inbox), adopted };
}

/** A process adopts a hold by renewing it, if the hold is another's or was handed off by the process itself. */
function noteHands(command: Command, reply: Reply, liveness: Liveness, adopted: HoldId[]): void {
  if (command.kind === 'renew' && reply.kind === 'renewed' && !liveness.isResponsible(command.hold)) {
    liveness.adopt(command.hold);
    adopted.push(command.hold);
  } else if (command.kind === 'release' || (command.kind === 'renew' && reply.kind === 'lost')) {
    liveness.ended(command.hold);
  }
}
