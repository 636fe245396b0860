/**
 * The file of API keys: JSON, `{ "version": 1, "keys": [{ id, name, hash, rights, createdAt, expiresAt?, revokedAt? }] }`,
 * readable by its owner alone, until the operator lets others read it. It has no secrets, only their hashes. It is
 * replaced as a whole, by a rename, so a reader sees the old or the new one; its owner and its readers stay the same.
 * Revoked API keys stay in it for the list; an invalid file is refused.
 */
import {
  closeSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { InvalidArgumentError } from 'holdfast';
import { isHash, KEY_ID } from './api-key.js';
import { rightsOf } from './rights.js';

export interface StoredApiKey {
  readonly id: string;
  /** The client's name. Two API keys of one name may be valid, so that a client can change to a new one. */
  readonly name: string;
  readonly hash: string;
  readonly rights: readonly string[];
  /** Epoch milliseconds, like all times here. */
  readonly createdAt: number;
  readonly expiresAt?: number;
  readonly revokedAt?: number;
}

/** A user, a host, a job: no spaces, so that it is one word in logs. */
export const KEY_NAME = /^[A-Za-z0-9_.@-]{1,64}$/;
const FILE_MODE = 0o600;
const OTHERS_READ = 0o044;
const MEMBERS = ['id', 'name', 'hash', 'rights', 'createdAt', 'expiresAt', 'revokedAt'];

export function isAlive({ expiresAt, revokedAt }: StoredApiKey, now: number): boolean {
  return revokedAt === undefined && (expiresAt === undefined || now < expiresAt);
}

/** The API keys in the file. With `mayBeMissing`, a missing file has none. */
export function readApiKeyFile(path: string, mayBeMissing = false): readonly StoredApiKey[] {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (mayBeMissing && isMissing(error)) return [];
    throw isMissing(error)
      ? new InvalidArgumentError(
          `There is no file of API keys ${path}. Create an API key first: holdfast api-key create NAME --api-keys ${path}.`,
        )
      : new InvalidArgumentError(`The API keys cannot be read from ${path}: ${reasonOf(error)}.`, {
          cause: error,
        });
  }
  return keysIn(text, path);
}

function keysIn(text: string, path: string): readonly StoredApiKey[] {
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch (error) {
    throw wrong(path, 'it is not JSON', error);
  }
  if (!isObject(file) || !Array.isArray(file.keys)) throw wrong(path, 'it has no list of keys');
  if (file.version !== 1) throw wrong(path, 'it is of a version that is not known here');
  const keys = file.keys.map((key: unknown, at) => keyOf(key, at, path));
  if (new Set(keys.map(({ id }) => id)).size < keys.length) throw wrong(path, 'two keys have the same id');
  return keys;
}

function keyOf(key: unknown, at: number, path: string): StoredApiKey {
  const fail = (what: string): never => {
    throw wrong(path, `key ${at + 1}: ${what}`);
  };
  if (!isObject(key)) return fail('it is not an object');
  const strange = Object.keys(key).find((name) => !MEMBERS.includes(name));
  if (strange !== undefined) return fail(`the member ${JSON.stringify(strange)} is not known`);
  const { id, name, hash, rights, createdAt, expiresAt, revokedAt } = key;
  if (typeof id !== 'string' || !KEY_ID.test(id)) return fail('the id is invalid');
  if (typeof name !== 'string' || !KEY_NAME.test(name)) return fail('the name is invalid');
  if (typeof hash !== 'string' || !isHash(hash)) return fail('the hash is invalid');
  if (!isTexts(rights)) return fail('the rights are not a list of texts');
  checkRights(rights, fail);
  if (!isTime(createdAt)) return fail('createdAt is not a time');
  if (expiresAt !== undefined && !isTime(expiresAt)) return fail('expiresAt is not a time');
  if (revokedAt !== undefined && !isTime(revokedAt)) return fail('revokedAt is not a time');
  return {
    id,
    name,
    hash,
    rights,
    createdAt,
    ...(expiresAt === undefined ? {} : { expiresAt }),
    ...(revokedAt === undefined ? {} : { revokedAt }),
  };
}

function checkRights(rights: readonly string[], fail: (what: string) => never): void {
  try {
    rightsOf(rights);
  } catch (error) {
    fail(reasonOf(error));
  }
}

export function writeApiKeyFile(path: string, keys: readonly StoredApiKey[], unique: string): void {
  const draft = `${path}.${unique}.draft`;
  try {
    const fd = openSync(draft, 'wx', FILE_MODE);
    try {
      writeFileSync(fd, `${JSON.stringify({ version: 1, keys }, null, 2)}\n`);
      keepAccess(path, fd);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw new InvalidArgumentError(`The API keys cannot be written to ${path}: ${reasonOf(error)}.`, {
      cause: error,
    });
  }
  // Otherwise a power failure could bring a revoked API key back.
  const folder = openSync(dirname(path), 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

/** A service may run as another user than the operator. If it cannot read its API keys, it refuses all clients. */
function keepAccess(path: string, draft: number): void {
  const before = statSync(path, { throwIfNoEntry: false });
  if (!before) return;
  const { uid, gid } = fstatSync(draft);
  if (uid !== before.uid || gid !== before.gid) fchownSync(draft, before.uid, before.gid);
  fchmodSync(draft, FILE_MODE | (before.mode & OTHERS_READ));
}

export function reasonOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/\.$/, '');
}

export function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

function isMissing(error: unknown): boolean {
  return codeOf(error) === 'ENOENT';
}

function wrong(path: string, what: string, cause?: unknown): InvalidArgumentError {
  return new InvalidArgumentError(`The file of API keys ${path} is not valid: ${what}.`, { cause });
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((text) => typeof text === 'string');
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
