/** Contenders of both kinds on one key for a bounded time; some die with the lock in hand. */
import { type Locks, StoreError } from 'holdfast';
import { type Random, seededRandom } from 'holdfast/testkit';
import { expect, it } from 'vitest';
import { claimOf, type Fleet, freshName, locksOf, pause, say } from './fleet.js';
import type { Foreign } from './foreign.js';

const RACE_MS = 8_000;
const SHORT_RACE_MS = 3_000;
/** On a busy machine it goes on until each kind has had a turn, and no longer than this. */
const RACE_MS_MAX = 30_000;
const LEASE_MS = 1_500;
/** In so many turns of the other software it dies. */
const DEATHS = 0.03;

interface Guest {
  readonly who: string;
  /** By its own clock. Whoever was slower than its lease is not inside any more, and knows it. */
  readonly isHeld: () => boolean;
}

/** Who is inside, and who came in while somebody was. */
class Room {
  readonly overlaps: string[] = [];
  readonly turns = { ours: 0, theirs: 0, deaths: 0 };
  readonly random: Random;
  readonly #sinceMs = performance.now();
  readonly #forMs: number;
  #inside: Guest | null = null;

  constructor(seed: number, forMs: number) {
    this.random = seededRandom(seed);
    this.#forMs = forMs;
  }

  get isOpen(): boolean {
    const forMs = performance.now() - this.#sinceMs;
    const hadBoth = this.turns.ours > 0 && this.turns.theirs > 0;
    return forMs < (hadBoth ? this.#forMs : RACE_MS_MAX);
  }

  async stay(who: string, kind: 'ours' | 'theirs', isHeld: () => boolean): Promise<void> {
    const guest: Guest = { who, isHeld };
    if (this.#inside?.isHeld() && isHeld()) this.overlaps.push(`${who} while ${this.#inside.who} was inside`);
    this.#inside = guest;
    this.turns[kind] += 1;
    await pause(this.random.between(2, 17));
    if (this.#inside !== guest && isHeld()) this.overlaps.push(`${who} was not alone`);
    if (this.#inside === guest) this.#inside = null;
  }
}

async function ours(locks: Locks, name: string, who: string, room: Room): Promise<void> {
  while (room.isOpen) {
    const lease = await locks.tryAcquire(name, { ttl: LEASE_MS }).catch(orUnknown);
    if (lease) {
      await room.stay(who, 'ours', () => lease.held);
      await lease.release().catch(orUnknown);
    }
    await pause(room.random.between(0, 40));
  }
}

/** On a machine that has much to do, an answer may come too late; what it granted is then given back. */
function orUnknown(error: unknown): null {
  if (error instanceof StoreError) return null;
  throw error;
}

/** Processes of ours that die inside, one after the other. */
async function dying(fleet: Fleet, name: string, room: Room): Promise<void> {
  const store = fleet.store();
  while (room.isOpen) {
    const sent = performance.now();
    const reply = await say(store, claimOf(name, LEASE_MS));
    if (reply.kind !== 'granted') {
      await pause(room.random.between(0, 100));
      continue;
    }
    const heldMs = (reply.expiresAt - reply.now) * 0.98;
    await room.stay('ours-dying', 'ours', () => performance.now() - sent < heldMs);
    room.turns.deaths += 1;
    await pause(1_000);
  }
}

async function theirs(foreign: Foreign, name: string, who: string, room: Room): Promise<void> {
  while (room.isOpen) {
    const sent = performance.now();
    const lock = await foreign.acquire(name, who, LEASE_MS);
    if (lock) {
      await room.stay(who, 'theirs', () => performance.now() - sent < LEASE_MS);
      if (room.random.chance(DEATHS)) room.turns.deaths += 1;
      else await lock.release();
    }
    await pause(room.random.between(0, 40));
  }
}

/** For the everyday run of a layout whose other cases are in the long run. */
export function shortRaceCase(open: () => Fleet): void {
  raceCase(open, SHORT_RACE_MS);
}

export function raceCase(open: () => Fleet, forMs = RACE_MS): void {
  it('contenders of both kinds on one key never overlap, also when some of them die', async () => {
    const fleet = open();
    const name = freshName();
    const seed = Date.now() % 1_000_000;
    const room = new Room(seed, forMs);
    const fleetOfOurs = [1, 2, 3].map(() => locksOf(fleet));
    await Promise.all([
      dying(fleet, name, room),
      ...fleetOfOurs.map((locks, at) => ours(locks, name, `ours-${at}`, room)),
      ...[1, 2, 3].map((at) => theirs(fleet.foreign(), name, `theirs-${at}`, room)),
    ]);
    expect(room.overlaps, `seed ${seed}, turns ${JSON.stringify(room.turns)}`).toEqual([]);
    expect(room.turns.ours).toBeGreaterThan(0);
    expect(room.turns.theirs).toBeGreaterThan(0);
  }, 60_000);
}
