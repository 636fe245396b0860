/** Takes the lock for `run`, or says who has it instead. */
import { AcquireTimeoutError, HoldfastError, type KeyInfo, type Lease, type Locks } from 'holdfast';
import { holderJson, holdersText } from './describe.js';
import { formatDuration } from './duration.js';
import { EXIT, Failure } from './exit.js';
import { printable } from './output.js';
import type { RunRequest } from './run-request.js';

export async function acquire(locks: Locks, request: RunRequest, signal: AbortSignal): Promise<Lease> {
  const options = { ...request.acquire, signal };
  try {
    if (request.capacity === null) return await locks.acquire(request.key, options);
    const { capacity, permits } = request;
    return await locks.semaphore(request.key, { capacity }).acquire({ ...options, permits });
  } catch (error) {
    throw error instanceof AcquireTimeoutError ? await notAcquired(locks, request, error) : error;
  }
}

/** Asked anew, because the error knows the holders' names only. By now another may hold it, or nobody. */
async function notAcquired(locks: Locks, request: RunRequest, error: AcquireTimeoutError): Promise<Failure> {
  const info = await look(locks, request.key);
  const key = `"${printable(request.key)}"`;
  const when =
    request.waitMs === 0 ? 'is not to be had now' : `was not had within ${formatDuration(request.waitMs)}`;
  const last = error.holders.map(printable).join(', ');
  let who = last === '' ? 'others wait for it' : `it was held by ${last}`;
  if (info && info.holders.length > 0) who = `held by ${holdersText(info)}`;
  const holders = (info?.holders ?? []).map(holderJson);
  return new Failure(EXIT.notAcquired, `${key} ${when}: ${who}`, {
    code: error.code,
    key: request.key,
    holders,
  });
}

/** A store that fails just now changes nothing about the lock not having been had in time. */
async function look(locks: Locks, key: string): Promise<KeyInfo | null> {
  try {
    return await locks.inspect(key);
  } catch (error) {
    if (error instanceof HoldfastError) return null;
    throw error;
  }
}
