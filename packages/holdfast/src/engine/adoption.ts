/**
 * Going on with a hold that another process, or this one, handed off. A renewal with the hold's own id finds out
 * whether it is still there, and gives it a whole ttl: one round trip, and no new command for any store.
 *
 * What stays with the old process is the inbox: hints for the holder still go there. So an adopted hold is never handed
 * over in memory, and learns of an eviction with its next renewal.
 */
import { InvalidArgumentError, LeaseLostError } from '../protocol/errors.js';
import type { HoldId } from '../protocol/state.js';
import type { Core } from './core.js';
import { askWithin } from './patience.js';
import { askTtlMs, type Request } from './request.js';
import type { Turn } from './turn.js';

/** What one process tells the other of the turn. */
export interface HandedOff {
  readonly id: HoldId;
  readonly request: Request;
  readonly token: number;
  /** By the store's clock. */
  readonly acquiredAt: number;
}

/** `checkOpen` throws once nobody here may hold anything any more. Unanswered, it may be tried again: nothing is ended. */
export async function adopt(core: Core, handed: HandedOff, checkOpen: () => void): Promise<Turn> {
  const { id, request, token } = handed;
  const { key, name } = request;
  const command = { kind: 'renew', key, hold: id, ttlMs: askTtlMs(request), block: false } as const;
  const { reply, sent } = await askWithin(core, command, name, 'adoption');
  checkOpen();
  if (reply.kind !== 'renewed') throw goneError(name, token);
  const turnstile = core.turnstileOf(key);
  for (const hold of turnstile.holds) {
    const isTwice = hold.id.process === id.process && hold.id.number === id.number;
    if (isTwice) throw twiceError(name, token);
  }
  const turn = turnstile.adopt(handed, reply, sent);
  if (!turn.held) throw turn.overError();
  core.events.emit('adopted', request, () => ({ token, remainingMs: turn.hold.remainingMs }));
  return turn;
}

function goneError(name: string, token: number): LeaseLostError {
  const message =
    `The lease on "${name}" (token ${token}) that was handed off is over: it expired, was released or was evicted. ` +
    'Do not do what it protects: others may hold the lock.';
  return new LeaseLostError(message, { key: name });
}

function twiceError(name: string, token: number): InvalidArgumentError {
  const message = `The lease on "${name}" (token ${token}) is held here already: a handoff is adopted once.`;
  return new InvalidArgumentError(message, { key: name });
}
