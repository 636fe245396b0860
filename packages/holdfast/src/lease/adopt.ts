/** Adopting: a lease that began in another process continues in this one. */
import type { Granted, Reply } from '../protocol/commands.js';
import { InvalidArgumentError, LeaseLostError } from '../protocol/errors.js';
import { sameHold } from '../protocol/state.js';
import type { HandedOff } from './handoff.js';
import { evictedBy } from './hold.js';
import { HeldLease } from './lease.js';
import { renewalTtlMs } from './lease-request.js';
import type { Leases } from './leases.js';

/**
 * Continues a lease that another process, or this one, handed off. A renewal with the hold's id finds out whether the hold
 * is still there, and gives it a whole ttl: one round trip, and no new command for stores.
 *
 * Wake-ups for the hold still go to the inbox of the old process. So an adopted hold is never handed over in memory, and
 * learns of an eviction with its next renewal. A call without an answer may be repeated: it ended nothing.
 */
export async function adopt(leases: Leases, handed: HandedOff): Promise<HeldLease> {
  leases.checkOpen();
  const { id, request, token, acquiredAt } = handed;
  const { key, name } = request;
  const command = { kind: 'renew', key, hold: id, ttlMs: renewalTtlMs(request), block: false } as const;
  const { reply, sent } = await leases.client.ask(command, name, 'adoption');
  leases.checkOpen();
  if (reply.kind !== 'renewed') throw goneError(name, token, reply);
  if (leases.holdsOn(key).some((hold) => sameHold(hold.id, id))) throw twiceError(name, token);
  const granted: Granted = { ...reply, kind: 'granted', token, tokenLast: token, acquiredAt };
  const hold = leases.newHoldOf(id, request, granted, sent);
  hold.setApart();
  const lease = new HeldLease(hold, acquiredAt, request.maxHoldMs - (reply.now - acquiredAt));
  lease.assertHeld();
  leases.events.emit('adopted', request, () => ({ token, remainingMs: lease.remainingMs }));
  return lease;
}

function goneError(name: string, token: number, reply: Reply): LeaseLostError {
  const evicted = reply.kind === 'lost' && reply.evicted ? evictedBy(reply.evicted.reason) : null;
  const message =
    `The lease on "${name}" (token ${token}) that was handed off is over: ${evicted?.message ?? 'it expired, was released or was evicted'}. ` +
    'Do not do what it protects: others may hold the lock.';
  return new LeaseLostError(message, { key: name, reason: evicted?.reason ?? 'expired' });
}

function twiceError(name: string, token: number): InvalidArgumentError {
  const message = `The lease on "${name}" (token ${token}) is held here already: a handoff is adopted once.`;
  return new InvalidArgumentError(message, { key: name });
}
