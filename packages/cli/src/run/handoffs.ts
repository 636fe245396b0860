/**
 * Leases that outlive the command that acquired them: their handoff strings, one per line, in a file that only its user
 * can read, or in a variable. A handoff is a secret, so it is never an argument, which others could see.
 */
import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  lstatSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { HoldfastError, type Lease, type Locks } from 'holdfast';
import { EXIT, Failure, failureOf, reasonOf, usageFailure } from '../failure.js';
import type { Options } from '../options/options.js';
import { codeOf } from '../printing/outlet.js';
import { printable, type Terminal, warn } from '../printing/terminal.js';
import type { Session } from '../session.js';

const VARIABLE = 'HOLDFAST_HANDOFF';
/** Only its user can read it. */
const MODE = 0o600;

/** The handoffs from --handoff or from the variable. */
export function readHandoffs(options: Options): readonly string[] {
  const file = options.text('handoff');
  const text = file === undefined ? process.env[VARIABLE] : contentOf(file);
  if (text === undefined) {
    throw usageFailure(`no lease: give --handoff FILE, or set ${VARIABLE} to the output of \`acquire\``);
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

/** Refuses a file that has the handoffs of other leases: overwritten, their locks could not be released any more. */
export function checkUnused(file: string): void {
  const found = change(file, 'written', () => statSync(file, { throwIfNoEntry: false }));
  if (!found?.isFile() || found.size === 0) return;
  const end = `\`holdfast release --handoff ${printable(file)}\``;
  throw usageFailure(
    `--handoff ${printable(file)} is not empty: end its lease with ${end}, remove the file, or give another`,
  );
}

/** Writes the handoffs of leases that were just acquired. */
export function writeHandoffs(file: string, handoffs: readonly string[]): void {
  checkUnused(file);
  change(file, 'written', () => write(file, handoffs));
}

/**
 * Works on the handoffs of the file, and then keeps in it those that the work left; without any, the file is removed. If
 * the work fails, a failed change of the file is only a warning.
 */
export async function keepingHandoffs(
  options: Options,
  handoffs: readonly string[],
  terminal: Terminal,
  work: (left: string[]) => Promise<void>,
): Promise<void> {
  const left = [...handoffs];
  try {
    await work(left);
  } catch (error) {
    try {
      keep(options, handoffs, left);
    } catch (failure) {
      if (!(failure instanceof Failure)) throw failure;
      terminal.warn(`warning: ${failure.message}`);
    }
    throw error;
  }
  keep(options, handoffs, left);
}

function keep(options: Options, before: readonly string[], after: readonly string[]): void {
  const file = options.text('handoff');
  if (file === undefined || before.join() === after.join()) return;
  if (after.length === 0) removeHandoffs(file);
  // Handoffs that came from a pipe or a device are not written back to it.
  else change(file, 'written', () => void (isFile(file) && write(file, after)));
}

/** Removes the file. A link stays, and its file is emptied. */
export function removeHandoffs(file: string): void {
  change(file, 'removed', () => {
    if (!isFile(file)) return;
    if (isRegular(file)) rmSync(file, { force: true });
    else write(file, []);
  });
}

/** A file, or a link to one. */
const isFile = (file: string): boolean => statSync(file, { throwIfNoEntry: false })?.isFile() === true;

function change<T>(file: string, what: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new Failure(EXIT.other, `--handoff ${printable(file)} could not be ${what}: ${reasonOf(error)}`);
  }
}

/** Also true if there is no file yet. A link is not regular: it may be /dev/stdout. */
function isRegular(file: string): boolean {
  return lstatSync(file, { throwIfNoEntry: false })?.isFile() ?? true;
}

function write(file: string, handoffs: readonly string[]): void {
  const text = handoffs.map((handoff) => `${handoff}\n`).join('');
  if (isRegular(file)) replace(file, text);
  else writeThrough(file, text);
}

/** Replaces the file as a whole: a reader finds the old handoffs or the new ones. */
function replace(file: string, text: string): void {
  const draft = `${file}.${process.pid}`;
  const fd = openSync(draft, 'wx', MODE);
  try {
    try {
      writeFileSync(fd, text);
    } finally {
      closeSync(fd);
    }
    renameSync(draft, file);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

/** Writes without replacing, so that links, pipes and devices stay. A pipe without a reader fails instead of blocking. */
function writeThrough(file: string, text: string): void {
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NONBLOCK } = constants;
  const fd = openSync(file, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK, MODE);
  try {
    if (fstatSync(fd).isFile()) fchmodSync(fd, MODE);
    writeFileSync(fd, text);
  } finally {
    closeSync(fd);
  }
}

/** Does the work for all handoffs, even if one fails; then throws the first failure, with the store's URL. */
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

/** Releases leases that no caller got, held here or handed off. They leave no cool-down. */
export async function giveBack(
  leases: readonly Lease[],
  handoffs: readonly string[],
  locks: Locks,
  terminal: Terminal,
): Promise<void> {
  const all = [
    ...leases.map((lease) => async () => lease),
    ...handoffs.map((handoff) => () => locks.adopt(handoff)),
  ];
  for (const open of all) {
    try {
      const lease = await open();
      await lease.release({ minHold: 0 });
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
