/** Opens the store that the options name. Passwords in its URL are never shown. */
import { homedir, hostname } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { createLocks, type Locks, openStore, type Store } from 'holdfast';
import { within } from './clock.js';
import { Failure, failureOf, usageFailure } from './failure.js';
import type { Options } from './options/options.js';
import { redact, redactIn } from './printing/redaction.js';
import { type Terminal, warn } from './printing/terminal.js';
import { loadService } from './service.js';
import { userName } from './user.js';

/** Variables of LockServiceCentral that may name a store, in both of its spellings. */
export const CENTRAL = /^(?:locker[._]|spring[._]profiles[._]active$)/i;

/** The limit for closing: a store that hangs must not keep a finished command from exiting. */
const CLOSE_MS_MAX = 2_000;

export interface Session {
  /** The store's URL without passwords. */
  readonly url: string;
  readonly store: Store;
  readonly locks: Locks;
  /** Never rejects: the outcome of the command is already decided. */
  close(terminal: Terminal): Promise<void>;
}

/** `$XDG_STATE_HOME` counts only when absolute, as its specification says. */
export function statePath(file: string): string {
  const state = process.env.XDG_STATE_HOME;
  const folder = state && isAbsolute(state) ? state : join(homeFolder(), '.local', 'state');
  return join(folder, 'holdfast', file);
}

/** Only an absolute path: with a relative one, every folder would have other locks, unnoticed. */
function homeFolder(): string {
  let home = '';
  try {
    home = homedir();
  } catch (error) {
    // No HOME, and no entry for this user in the system's list.
    if (!(error instanceof Error && 'code' in error)) throw error;
  }
  if (isAbsolute(home)) return home;
  throw usageFailure(
    'no home folder to keep the locks in: HOME is not an absolute path; give --store URL or set HOLDFAST_STORE',
  );
}

/** The store of --store, or else of HOLDFAST_STORE, of LockServiceCentral's variables, or a file of this user. */
export async function storeUrl(options: Options): Promise<string> {
  const given = options.text('store') ?? process.env.HOLDFAST_STORE;
  if (given) return given;
  return (await centralStoreUrl()) ?? defaultStoreUrl();
}

async function centralStoreUrl(): Promise<string | null> {
  if (!Object.keys(process.env).some((name) => CENTRAL.test(name))) return null;
  const { centralStore } = await loadService();
  return centralStore(process.env);
}

export function defaultStoreUrl(): string {
  // A question mark would start the options of the URL.
  return `sqlite:${statePath('locks.db').replaceAll('%', '%25').replaceAll('?', '%3F')}`;
}

/** Opens a session for one piece of work, and closes it after that. */
export async function inSession<T>(
  options: Options,
  terminal: Terminal,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const session = await openSession(options);
  try {
    return await work(session);
  } finally {
    await session.close(terminal);
  }
}

export async function openSession(options: Options): Promise<Session> {
  const url = await storeUrl(options);
  const store = await open(url);
  try {
    const namespace = options.text('namespace');
    const locks = createLocks(store, {
      owner: defaultOwner(),
      ...(namespace !== undefined && { namespace }),
    });
    return { url: redact(url), store, locks, close: (terminal) => close(locks, terminal) };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** User, host and process. */
function defaultOwner(): string {
  return `${userName()}@${hostname()}:${process.pid}`;
}

async function close(locks: Locks, terminal: Terminal): Promise<void> {
  try {
    await within(CLOSE_MS_MAX, locks.close({ drain: 0 }));
  } catch (error) {
    warn(terminal, 'the store could not be closed', error);
  }
}

export function open(url: string): Promise<Store> {
  return withUrl(url, () => openStore(url));
}

/** Adds the store's URL to the message of a failure. */
export async function withUrl<T>(url: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const failure = failureOf(error);
    if (!failure) throw error;
    throw new Failure(failure.status, `${redact(url)}: ${redactIn(failure.message, url)}`, failure.details);
  }
}
