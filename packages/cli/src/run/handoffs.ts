/**
 * Leases that outlive the command that acquired them: their handoff strings, one per line, in a file that only its user
 * can read, or in a variable. A handoff is a secret: it is never an argument, which others could see.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { HoldfastError, type Lease, type Locks } from 'holdfast';
import { EXIT, Failure, failureOf, usageFailure } from '../failure.js';
import type { Options } from '../options/options.js';
import { codeOf } from '../printing/outlet.js';
import { printable, type Terminal, warn } from '../printing/terminal.js';
import type { Session } from '../session.js';

const VARIABLE = 'HOLDFAST_HANDOFF';

/** The handoffs that --handoff or the variable has. */
export function readHandoffs(options: Options): readonly string[] {
  const file = options.text('handoff');
  const text = file === undefined ? process.env[VARIABLE] : contentOf(file);
  if (text === undefined) {
    throw usageFailure(`no lease: give --handoff FILE, or set ${VARIABLE} to what \`acquire\` printed`);
  }
  const handoffs = text.split(/\s+/).filter(Boolean);
  const where = file === undefined ? VARIABLE : printable(file);
  if (handoffs.length === 0) throw usageFailure(`${where} is empty: was the lock acquired?`);
  return handoffs;
}

function contentOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const isMissing = codeOf(error) === 'ENOENT';
    const why = isMissing
      ? 'there is no such file; was the lock acquired, or released before?'
      : reasonOf(error);
    throw usageFailure(`--handoff ${printable(file)}: ${why}`);
  }
}

/** Replaces the file as a whole: a reader finds the old handoffs or the new ones. */
export function writeHandoffs(file: string, handoffs: readonly string[]): void {
  const draft = `${file}.${process.pid}`;
  try {
    writeFileSync(draft, handoffs.map((handoff) => `${handoff}\n`).join(''), { mode: 0o600, flag: 'wx' });
    renameSync(draft, file);
  } catch (error) {
    rmSync(draft, { force: true });
    throw new Failure(EXIT.other, `--handoff ${printable(file)}: ${reasonOf(error)}`);
  }
}

/** Removes the file when none is left. */
export function keepHandoffs(options: Options, handoffs: readonly string[]): void {
  const file = options.text('handoff');
  if (file === undefined) return;
  if (handoffs.length > 0) writeHandoffs(file, handoffs);
  else rmSync(file, { force: true });
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Calls back for all of them, whatever becomes of one; then the first failure is thrown, with the store's URL. */
export async function forEachHandoff(
  handoffs: readonly string[],
  session: Session,
  work: (handoff: string) => Promise<void>,
): Promise<void> {
  const failures: Failure[] = [];
  for (const handoff of handoffs) {
    try {
      await work(handoff);
    } catch (error) {
      const failure = failureOf(error);
      if (!failure) throw error;
      failures.push(failure);
    }
  }
  const [first] = failures;
  if (first) throw new Failure(first.status, `${first.message} (store: ${session.url})`, first.details);
}

/** Frees the locks of handoffs that nobody got. */
export async function giveBack(handoffs: readonly string[], locks: Locks, terminal: Terminal): Promise<void> {
  for (const handoff of handoffs) {
    try {
      const lease = await locks.adopt(handoff);
      await lease.release();
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error;
      warn(terminal, 'the lock could not be released; it is free when its ttl is over', error);
    }
  }
}

/** The `--json` form of a lease. */
export function leaseJson({ key, token, owner, expiresAt }: Lease): object {
  return { key, token, owner, expiresAt: expiresAt.toISOString() };
}
