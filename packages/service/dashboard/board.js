/** The locks as they are known here: what is told is put together, counted, searched and ordered. */

/**
 * @typedef {{ owner: string, permits: number, capacity: number, token: number, acquiredAt: number, expiresAt: number, metadata: unknown, resting: boolean }} Holder
 * @typedef {{ owner: string, permits: number, capacity: number, since: number, woken: boolean }} Waiter
 * @typedef {{ key: string, now: number, token: number, holders: Holder[], holding?: number, waiters: Waiter[], waiting: number }} Lock
 * @typedef {'name' | 'waiting' | 'ends'} Order
 */

export class Board {
  constructor() {
    /** @type {Map<string, Lock>} */
    this.locks = new Map();
    /** @type {Map<string, Lock> | null} What a new connection tells, until it has told everything. */
    this.incoming = null;
    /** @type {WeakMap<Lock, string>} */
    this.texts = new WeakMap();
  }

  begin() {
    this.incoming = new Map();
  }

  /** Everything was told: what is not among it is gone. */
  complete() {
    if (this.incoming) this.locks = this.incoming;
    this.incoming = null;
  }

  /**
   * Gives what was known of the lock before; null while everything is told for the first time.
   * @param {Lock} lock
   * @param {boolean} isGone
   * @returns {{ before: Lock | undefined } | null}
   */
  put(lock, isGone) {
    const locks = this.incoming ?? this.locks;
    const before = locks.get(lock.key);
    if (isGone) locks.delete(lock.key);
    else locks.set(lock.key, lock);
    return this.incoming ? null : { before };
  }

  /** @param {number} nowMs */
  figures(nowMs) {
    const figures = { held: 0, waiting: 0, contended: 0, longestMs: 0 };
    for (const { holders, waiters, waiting } of this.locks.values()) {
      if (holders.length > 0) figures.held += 1;
      if (waiting === 0) continue;
      figures.waiting += waiting;
      figures.contended += 1;
      for (const { since } of waiters) figures.longestMs = Math.max(figures.longestMs, nowMs - since);
    }
    return figures;
  }

  /**
   * @param {string} search
   * @param {Order} order
   */
  select(search, order) {
    const words = wordsOf(search);
    const found = [...this.locks.values()].filter((lock) => has(this.textOf(lock), words));
    return found.sort((a, b) => compare(a, b, order));
  }

  /** @param {Lock} lock */
  textOf(lock) {
    const known = this.texts.get(lock);
    if (known !== undefined) return known;
    const holders = lock.holders.flatMap(({ owner, token, metadata }) => [
      owner,
      `token ${token}`,
      showMetadata(metadata),
    ]);
    const text = [lock.key, ...holders, ...lock.waiters.map(({ owner }) => owner)].join('\n').toLowerCase();
    this.texts.set(lock, text);
    return text;
  }
}

/** @param {string} search */
export function wordsOf(search) {
  return search.toLowerCase().split(/\s+/).filter(Boolean);
}

/**
 * @param {string} text
 * @param {string[]} words
 */
export function has(text, words) {
  return words.every((word) => text.includes(word));
}

/** @param {unknown} metadata */
export function showMetadata(metadata) {
  if (metadata === null || metadata === undefined) return '';
  return typeof metadata === 'string'
    ? metadata
    : JSON.stringify(metadata, null, 1).replaceAll(/\n\s*/g, ' ');
}

/**
 * Also those that are not shown, of a lock that very many hold.
 * @param {Lock} lock
 */
export function countHolders({ holders, holding }) {
  return holding ?? holders.length;
}

/** @param {Lock} lock */
export function endOf({ holders }) {
  return Math.min(...holders.map(({ expiresAt }) => expiresAt));
}

/**
 * @param {Lock} a
 * @param {Lock} b
 * @param {Order} order
 */
function compare(a, b, order) {
  if (order === 'waiting' && a.waiting !== b.waiting) return b.waiting - a.waiting;
  if (order === 'ends' && endOf(a) !== endOf(b)) return endOf(a) - endOf(b);
  return a.key < b.key ? -1 : 1;
}
