/**
 * Creates, lists and revokes API keys, for `holdfast api-key`. Public as `holdfast-service/api-keys`, because it loads in
 * a fraction of the service's time: it imports none of the service's dependencies. A lock file keeps two operators from
 * changing the file at once. A running service sees a change within a second.
 */
import { closeSync, existsSync, mkdirSync, openSync, realpathSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { InvalidArgumentError } from 'holdfast';
import { after, monotonicMs, randomId, wallMs } from '../clock.js';
import type { Audit } from '../http/audit.js';
import { newKey } from './api-key.js';
import {
  codeOf,
  isAlive,
  KEY_NAME,
  readApiKeyFile,
  reasonOf,
  type StoredApiKey,
  writeApiKeyFile,
} from './api-key-file.js';
import { rightsOf } from './rights.js';

export { auditFile } from './audit.js';

/** One API key in use, and one to change to. */
const ALIVE_MAX = 2;
const LOCK_WAIT_MS = 5_000;
const LOCK_POLL_MS = 50;

export interface ApiKeyChange {
  readonly path: string;
  /** The operator, for the audit log. */
  readonly by: string;
  readonly audit?: Audit;
}

/** An API key without secrets. */
export interface ApiKeyInfo {
  readonly id: string;
  readonly name: string;
  readonly rights: readonly string[];
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
  readonly alive: boolean;
}

export interface CreatedKey extends ApiKeyInfo {
  /** The API key itself. It is not stored, so show it now. */
  readonly text: string;
}

export interface KeyWanted {
  readonly name: string;
  /** Default: the rights of the valid API key of this name. */
  readonly rights?: readonly string[];
  readonly ttlMs?: number;
}

export async function createApiKey(change: ApiKeyChange, wanted: KeyWanted): Promise<CreatedKey> {
  const { name, ttlMs } = wanted;
  if (!KEY_NAME.test(name)) {
    throw new InvalidArgumentError(
      `The name ${JSON.stringify(name.slice(0, 80))} is invalid: use 1 to 64 letters, digits, or any of _ . @ -`,
    );
  }
  return await changing(change.path, async (keys) => {
    const now = wallMs();
    const before = keys.filter((key) => key.name === name && isAlive(key, now));
    if (before.length >= ALIVE_MAX) {
      const ids = before.map(({ id }) => id).join(' and ');
      throw new InvalidArgumentError(
        `"${name}" has ${ALIVE_MAX} valid API keys, ${ids}: revoke one before you create another.`,
      );
    }
    const rights = wanted.rights ?? before[0]?.rights ?? [];
    if (rights.length === 0) {
      throw new InvalidArgumentError('Name the rights of the API key, such as "lock:billing" or "read:*".');
    }
    rightsOf(rights);
    const { id, text, hash } = newKey();
    const expiry = ttlMs === undefined ? {} : { expiresAt: now + ttlMs };
    const key: StoredApiKey = { id, name, hash, rights, createdAt: now, ...expiry };
    // Before the change: there must be no API key without an entry in the audit log.
    await change.audit?.({ event: 'key-create', by: change.by, id, name, rights });
    return { keys: [...keys, key], result: { ...shown(key, now), text } };
  });
}

/** Revokes an API key by id, or all valid ones by name. Returns the revoked ones. */
export async function revokeApiKeys(change: ApiKeyChange, idOrName: string): Promise<readonly ApiKeyInfo[]> {
  return await changing(change.path, async (keys) => {
    const now = wallMs();
    const meant = keys.filter(({ id, name }) => id === idOrName || name === idOrName);
    if (meant.length === 0) {
      throw new InvalidArgumentError(`There is no API key ${JSON.stringify(idOrName.slice(0, 80))}.`);
    }
    const ending = meant.filter((key) => key.revokedAt === undefined);
    for (const { id, name, rights } of ending) {
      await change.audit?.({ event: 'key-revoke', by: change.by, id, name, rights });
    }
    const after = keys.map((key) => (ending.includes(key) ? { ...key, revokedAt: now } : key));
    const ids = ending.map(({ id }) => id);
    return {
      keys: after,
      result: after.filter(({ id }) => ids.includes(id)).map((key) => shown(key, now)),
    };
  });
}

/** The API keys without secrets and hashes. */
export function listApiKeys(path: string): readonly ApiKeyInfo[] {
  return readApiKeyFile(path, true).map((key) => shown(key, wallMs()));
}

function shown(key: StoredApiKey, now: number): ApiKeyInfo {
  const { id, name, rights, createdAt, expiresAt = null, revokedAt = null } = key;
  return { id, name, rights, createdAt, expiresAt, revokedAt, alive: isAlive(key, now) };
}

interface Change<T> {
  readonly keys: readonly StoredApiKey[];
  readonly result: T;
}

async function changing<T>(
  given: string,
  change: (keys: readonly StoredApiKey[]) => Promise<Change<T>>,
): Promise<T> {
  // Replaces the file behind a link, not the link: a service that reads that file would never see a revocation.
  const path = existsSync(given) ? realpathSync(given) : given;
  const lock = `${path}.lock`;
  await takeLock(lock);
  try {
    const { keys, result } = await change(readApiKeyFile(path, true));
    writeApiKeyFile(path, keys, randomId());
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
        `Another operator is changing the API keys. If not, delete ${lock} and try again.`,
      );
    }
    await new Promise<void>((resolve) => {
      after(LOCK_POLL_MS, resolve);
    });
  }
}

/** Whether the lock file is ours now. */
function isTaken(lock: string): boolean {
  try {
    mkdirSync(dirname(lock), { recursive: true, mode: 0o700 });
    closeSync(openSync(lock, 'wx', 0o600));
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw new InvalidArgumentError(`The API keys cannot be changed: ${reasonOf(error)}.`, { cause: error });
  }
}
