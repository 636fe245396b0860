/**
 * Leases of this contract as holds, in commands of the store; for every store but those with locks of instances. A second
 * acquire never releases the lease first: a waiter of `/v2` could get it. Instead it moves the expiry of the hold, forward
 * or back, and a renewal adds to the expiry. Both commands name the expiry that they saw, so a repeated command has no
 * second effect (P25).
 */
import { StoreError } from 'holdfast';
import {
  type Claim,
  type Command,
  type HolderView,
  type HoldId,
  type Release,
  type Renew,
  type Reply,
  type Snapshot,
  TOKEN_BLOCK,
} from 'holdfast/protocol';
import { random, randomId } from '../clock.js';
import { forgetOldest } from '../forget-oldest.js';
import type { ServiceClient } from '../waiting/service-client.js';
import {
  type Bound,
  holdOf,
  type Identity,
  type Lease,
  type Leases,
  type Look,
  metadataOf,
  saltOf,
} from './leases.js';

interface Own {
  readonly hold: HoldId;
  readonly salt: string;
  readonly holder: HolderView;
}

/** Each try means that another client changed the lock since it was read. */
const TRIES_MAX = 100;
/** A renewal first sets an expiry this far before the end of its second, to recognise its own write. */
const MARK_MS_MAX = 999;

export class HoldLeases implements Leases {
  readonly #client: ServiceClient;
  readonly #notHeld = new NegativeCache();
  #mark = Math.floor(random() * MARK_MS_MAX);

  constructor(client: ServiceClient) {
    this.#client = client;
  }

  /** Of several holders, shows the one with the latest expiry, because nobody else gets the lock before that. */
  async look(key: string): Promise<Look | null> {
    const holders = (await this.#client.read(key))?.holders ?? [];
    const [last] = holders.toSorted((a, b) => b.expiresAt - a.expiresAt);
    return last ? { owner: last.owner, expiry: expiryOf(last.expiresAt) } : null;
  }

  async holdOf(who: Identity): Promise<HoldId | null> {
    const snapshot = await this.#client.read(who.key);
    return this.#ownAmong(who, snapshot?.holders ?? [])?.hold ?? null;
  }

  async acquire(who: Identity, seconds: number): Promise<Lease | null> {
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const claim = claimOf(who, seconds);
      const reply = await this.#client.replyTo(claim);
      if (reply.kind === 'granted') {
        const expiry = secondOf(reply.acquiredAt) + seconds;
        await this.#roundUp(claim, reply.acquiredAt, reply.expiresAt, endOf(expiry));
        return { hold: claim.hold, leaseDuration: seconds, expiry };
      }
      // Not busy: the claim was granted, evicted, and sent again because the reply was lost.
      if (reply.kind !== 'busy') continue;
      const own = this.#ownAmong(who, reply.holders);
      if (!own) return null;
      const expiry = await this.#overwrite(who, own, seconds, reply.now);
      if (expiry !== null) return { hold: own.hold, leaseDuration: seconds, expiry };
      this.#notHeld.add(own.hold.process);
    }
    return null;
  }

  async renew(who: Identity, seconds: number, { check }: Bound): Promise<Lease | null> {
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const snapshot = await this.#client.read(who.key);
      const own = this.#ownAmong(who, snapshot?.holders ?? []);
      if (!snapshot || !own) return null;
      const expiry = expiryOf(own.holder.expiresAt) + seconds;
      check(endOf(expiry) - snapshot.now);
      const outcome = await this.#add(who, own, endOf(expiry));
      if (outcome === 'added') {
        // Renewals add as much to the lease as to the expiry.
        return { hold: own.hold, leaseDuration: expiry - acquireSecondOf(snapshot, own.holder), expiry };
      }
      if (outcome === 'lost') this.#notHeld.add(own.hold.process);
    }
    throw overtaken(who.key, 'renewal');
  }

  async release(who: Identity): Promise<HoldId | null | false> {
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const holders = (await this.#client.read(who.key))?.holders ?? [];
      if (holders.length === 0) return null;
      const own = this.#ownAmong(who, holders);
      if (!own) return false;
      if (await this.#end(who, own)) return own.hold;
      this.#notHeld.add(own.hold.process);
    }
    return false;
  }

  /** The holder that may be this identity, by its owner and salt. A command with the hold decides. */
  #ownAmong(who: Identity, holders: readonly HolderView[]): Own | null {
    for (const holder of holders) {
      const salt = holder.owner === who.owner ? saltOf(holder) : null;
      if (salt === null) continue;
      const hold = holdOf(who, salt);
      if (!this.#notHeld.has(hold.process)) return { hold, salt, holder };
    }
    return null;
  }

  /** Moves the end of a new lease to the end of a second: the claim could not know when it would be decided. */
  async #roundUp(
    { key, hold, ttlMs }: Claim,
    acquiredAt: number,
    expiresAt: number,
    end: number,
  ): Promise<void> {
    // Another request of the same identity came between and set its own expiry.
    if (expiresAt !== acquiredAt + ttlMs || expiresAt === end) return;
    await this.#client.replyTo(moveOf(key, hold, expiresAt, end));
  }

  /** The new expiry; null when the hold is not this identity's, or has ended. */
  async #overwrite({ key }: Identity, own: Own, seconds: number, now: number): Promise<number | null> {
    let { expiresAt } = own.holder;
    let second = secondOf(now);
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const end = endOf(second + seconds);
      // The block keeps the second of this acquire, for later renewals.
      const reply = await this.#client.replyTo({ ...moveOf(key, own.hold, expiresAt, end), block: true });
      if (reply.kind !== 'renewed') return null;
      const isIn = reply.expiresAt === end;
      // The command was decided in a later second than assumed: repeat it from that second.
      if (isIn && (secondOf(reply.now) === second || tries > 1)) return second + seconds;
      expiresAt = reply.expiresAt;
      second = secondOf(reply.now);
    }
    throw overtaken(key, 'acquire');
  }

  /**
   * Two renewals at once see the same expiry, and may want to add the same. The second renewal must not take the success
   * of the first for its own. So each first moves the expiry to a millisecond of its own, and after that success to the
   * end of the second.
   */
  async #add({ key }: Identity, { hold, holder }: Own, end: number): Promise<'added' | 'overtaken' | 'lost'> {
    this.#mark = (this.#mark % MARK_MS_MAX) + 1;
    const mark = end - this.#mark;
    const add = moveOf(key, hold, holder.expiresAt, mark);
    const { reply, isRepeated } = await this.#askOnce(add);
    if (reply.kind !== 'renewed') return 'lost';
    if (reply.expiresAt !== mark) {
      // The first attempt may have been executed, and another renewal followed: repeating and skipping may both be wrong.
      if (isRepeated) throw overtaken(key, 'renewal');
      return 'overtaken';
    }
    await this.#client.replyTo(moveOf(key, hold, mark, end));
    return 'added';
  }

  /** Sends the command again if the outcome of the first attempt is unknown, and says so. */
  async #askOnce(command: Command): Promise<{ readonly reply: Reply; readonly isRepeated: boolean }> {
    try {
      const [reply] = await Promise.all(this.#client.attempt([command]));
      if (reply) return { reply, isRepeated: false };
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
    }
    return { reply: await this.#client.replyTo(command), isRepeated: true };
  }

  /** Whether the lock was this identity's, and has ended. */
  async #end({ key }: Identity, { hold, salt }: Own): Promise<boolean> {
    const release: Release = { kind: 'release', key, hold, minHoldMs: 0 };
    const { reply, isRepeated } = await this.#askOnce(release);
    if (reply.kind === 'released' && reply.held) return true;
    if (!isRepeated) return false;
    // "Not held" may only mean that the first attempt ended it.
    const left = (await this.#client.read(key))?.holders ?? [];
    return !left.some((holder) => saltOf(holder) === salt);
  }
}

/** The ttl is rather a millisecond too long than too short, so that the last millisecond is in the right second. */
function claimOf(who: Identity, seconds: number): Claim {
  const { key, owner } = who;
  const salt = randomId();
  return {
    kind: 'claim',
    key,
    hold: holdOf(who, salt),
    owner,
    permits: 1,
    capacity: 1,
    ttlMs: seconds * 1_000 + 1,
    queue: false,
    inbox: null,
    metadata: metadataOf(salt),
  };
}

/** Moves the end of a hold, if it is still the end that was seen. */
function moveOf(key: string, hold: HoldId, from: number, to: number): Renew {
  return { kind: 'renew', key, hold, ttlMs: 1, block: false, added: { ms: to - from, expiresAt: from } };
}

function overtaken(key: string, operation: string): StoreError {
  return new StoreError(`The lock "${key}" changed during every attempt. Try again.`, {
    key,
    operation,
  });
}

/** Whole epoch seconds, the unit of this contract. A lock includes the whole second of its `expiry`. */
function secondOf(ms: number): number {
  return Math.floor(ms / 1_000);
}

/** The end of a lock whose last second this is. */
function endOf(expiry: number): number {
  return (expiry + 1) * 1_000;
}

/** The last second of which a part belongs to a lock. */
function expiryOf(expiresAt: number): number {
  return Math.ceil(expiresAt / 1_000) - 1;
}

/**
 * The second in which an exclusive lock was acquired last. A claim reserves a block of tokens; so does the renewal that
 * overwrites a lease, and blocks begin at the store's microsecond. Nothing else moves the highest token while it is held.
 */
function acquireSecondOf({ token }: Snapshot, holder: HolderView): number {
  const blockBegin = token - (TOKEN_BLOCK - 1);
  return holder.token === blockBegin ? secondOf(holder.acquiredAt) : secondOf(blockBegin / 1_000);
}

const CACHED_MAX = 10_000;

/**
 * Holds that are known to have ended. A hold is used once, so that stays true: a client that polls asks the store once.
 */
class NegativeCache {
  readonly #holds = new Set<string>();

  add(hold: string): void {
    this.#holds.add(hold);
    forgetOldest(this.#holds, CACHED_MAX, (oldest) => this.#holds.delete(oldest));
  }

  has(hold: string): boolean {
    return this.#holds.has(hold);
  }
}
