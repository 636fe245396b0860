/**
 * Making, listing and revoking API keys, as `holdfast key` does. Every change is made alone: a lock file beside the
 * keys keeps two operators apart. A running service sees a change within a second.
 */
import { closeSync, mkdirSync, openSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { InvalidArgumentError } from 'holdfast';
import { after, monotonicMs, randomId, wallMs } from '../clock.js';
import type { Audit } from '../http/audit.js';
import { newKey } from './api-key.js';
import { codeOf, isAlive, KEY_NAME, readKeyFile, type StoredKey, writeKeyFile } from './key-file.js';
import { rightsOf } from './rights.js';

/** One to use, one to change to. */
const ALIVE_MAX = 2;
const LOCK_WAIT_MS = 5_000;
const LOCK_POLL_MS = 50;

export interface KeyChange {
  readonly path: string;
  /** Who does it, for the audit log. */
  readonly by: string;
  readonly audit?: Audit;
}

/** A key as it may be shown. */
export interface KeyInfo {
  readonly id: string;
  readonly name: string;
  readonly rights: readonly string[];
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
  readonly alive: boolean;
}

export interface CreatedKey extends KeyInfo {
  /** The key itself. It is kept nowhere: show it now or never. */
  readonly text: string;
}

export interface KeyWanted {
  readonly name: string;
  /** As the key alive of this name has them, unless given. */
  readonly rights?: readonly string[];
  readonly ttlMs?: number;
}

export async function createKey(change: KeyChange, wanted: KeyWanted): Promise<CreatedKey> {
  const { name, ttlMs } = wanted;
  if (!KEY_NAME.test(name)) {
    throw new InvalidArgumentError(
      `The name ${JSON.stringify(name.slice(0, 80))} is not usable: take 1 to 64 letters, digits, or any of _ . @ -`,
    );
  }
  return await changing(change.path, (keys) => {
    const now = wallMs();
    const before = keys.filter((key) => key.name === name && isAlive(key, now));
    if (before.length >= ALIVE_MAX) {
      const ids = before.map(({ id }) => id).join(' and ');
      throw new InvalidArgumentError(
        `"${name}" has ${ALIVE_MAX} keys alive, ${ids}: revoke one before you make another.`,
      );
    }
    const rights = wanted.rights ?? before[0]?.rights ?? [];
    if (rights.length === 0) {
      throw new InvalidArgumentError('Say what the key may do: rights such as "lock:billing" or "read:*".');
    }
    rightsOf(rights);
    const { id, text, hash } = newKey();
    const expiry = ttlMs === undefined ? {} : { expiresAt: now + ttlMs };
    const key: StoredKey = { id, name, hash, rights, createdAt: now, ...expiry };
    // First: a key that no log knows of must not be.
    change.audit?.({ event: 'key-create', by: change.by, id, name, rights });
    return { keys: [...keys, key], result: { ...shown(key, now), text } };
  });
}

/** By id, or by name: then all that are alive of that name. Gives those that were revoked. */
export async function revokeKeys(change: KeyChange, idOrName: string): Promise<readonly KeyInfo[]> {
  return await changing(change.path, (keys) => {
    const now = wallMs();
    const meant = keys.filter(({ id, name }) => id === idOrName || name === idOrName);
    if (meant.length === 0) {
      throw new InvalidArgumentError(`There is no key ${JSON.stringify(idOrName.slice(0, 80))}.`);
    }
    const ending = meant.filter((key) => key.revokedAt === undefined);
    for (const { id, name, rights } of ending) {
      change.audit?.({ event: 'key-revoke', by: change.by, id, name, rights });
    }
    const after = keys.map((key) => (ending.includes(key) ? { ...key, revokedAt: now } : key));
    const ids = ending.map(({ id }) => id);
    return {
      keys: after,
      result: after.filter(({ id }) => ids.includes(id)).map((key) => shown(key, now)),
    };
  });
}

/** Without secrets, and without what they could be checked against. */
export function listKeys(path: string): readonly KeyInfo[] {
  return readKeyFile(path, true).map((key) => shown(key, wallMs()));
}

function shown(key: StoredKey, now: number): KeyInfo {
  const { id, name, rights, createdAt, expiresAt = null, revokedAt = null } = key;
  return { id, name, rights, createdAt, expiresAt, revokedAt, alive: isAlive(key, now) };
}

interface Change<T> {
  readonly keys: readonly StoredKey[];
  readonly result: T;
}

async function changing<T>(path: string, change: (keys: readonly StoredKey[]) => Change<T>): Promise<T> {
  const lock = `${path}.lock`;
  await takeLock(lock);
  try {
    const { keys, result } = change(readKeyFile(path, true));
    writeKeyFile(path, keys, randomId());
    return result;
  } finally {
    rmSync(lock, { force: true });
  }
}

async function takeLock(lock: string): Promise<void> {
  const untilMs = monotonicMs() + LOCK_WAIT_MS;
  while (!isTaken(lock)) {
    if (monotonicMs() > untilMs) {
      throw new InvalidArgumentError(
        `Somebody changes the keys already. If nobody does, delete ${lock} and try again.`,
      );
    }
    await new Promise<void>((resolve) => {
      after(LOCK_POLL_MS, resolve);
    });
  }
}

/** Whether it is ours now. */
function isTaken(lock: string): boolean {
  try {
    mkdirSync(dirname(lock), { recursive: true, mode: 0o700 });
    closeSync(openSync(lock, 'wx', 0o600));
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw new InvalidArgumentError(`The keys cannot be changed: ${String(error)}.`, { cause: error });
  }
}
