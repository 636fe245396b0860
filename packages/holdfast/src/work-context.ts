/**
 * Which leases the running code works under. `withLock` runs its work in this context, so that a nested call for the
 * same key, which could only wait for itself, is refused at once.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Core } from './engine/core.js';
import type { Request } from './engine/request.js';
import type { Turn } from './engine/turn.js';
import { InvalidArgumentError } from './protocol/errors.js';

const turnsAbove = new AsyncLocalStorage<readonly Turn[]>();

/** A flat list, and only of what is still held: work that starts its own successor must not keep all that came before. */
export function runWork<T>(turns: readonly Turn[], work: () => T): T {
  const outer = turnsAbove.getStore()?.filter(({ state }) => state === 'held') ?? [];
  return turnsAbove.run([...outer, ...turns], work);
}

/** Throws when the request cannot be granted before the work that makes it has ended. */
export function checkWaitsForOthers({ store }: Core, request: Request): void {
  let { permits, capacity } = request;
  let own: Turn | undefined;
  for (const turn of turnsAbove.getStore() ?? []) {
    if (turn.request.key !== request.key || turn.hold.core.store !== store || !turn.held) continue;
    permits += turn.request.permits;
    capacity = Math.min(capacity, turn.request.capacity);
    own = turn;
  }
  if (!own || permits <= capacity) return;
  throw new InvalidArgumentError(
    `"${request.name}" is held by the very work that asks for it again (token ${own.token}), so the call would wait for ` +
      'itself. Use the lease that the work was given, or ask for another key.',
    { key: request.name },
  );
}
