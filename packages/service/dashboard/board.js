/** The locks as they are known here: what is told is put together, counted, searched and ordered. */
import { splitKey } from './dom.js';

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
    /** How many locks there are in each namespace. @type {Map<string, number>} */
    this.namespaces = new Map();
  }

  begin() {
    this.incoming = new Map();
  }

  /** Everything was told: what is not among it is gone. */
  complete() {
    if (this.incoming) this.locks = this.incoming;
    this.incoming = null;
    this.namespaces.clear();
    for (const key of this.locks.keys()) this.count(key, 1);
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
    if (this.incoming) return null;
    if (isGone !== !before) this.count(lock.key, isGone ? -1 : 1);
    return { before };
  }

  /**
   * @param {string} key
   * @param {number} by
   */
  count(key, by) {
    const { namespace } = splitKey(key);
    const count = (this.namespaces.get(namespace) ?? 0) + by;
    if (count > 0) this.namespaces.set(namespace, count);
    else this.namespaces.delete(namespace);
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
   * @param {string} namespace empty for all
   * @param {string} search
   * @param {Order} order
   */
  select(namespace, search, order) {
    const words = wordsOf(search);
    const prefix = namespace === '' ? '' : `${namespace}/`;
    const found = [...this.locks.values()].filter(
      (lock) => lock.key.startsWith(prefix) && (words.length === 0 || has(this.textOf(lock), words)),
    );
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

/** @typedef {{ what: 'granted' | 'ended' | 'waits' | 'left' | 'renewed', text: string }} Story */

/**
 * What changed between two looks at a lock, in words. How a hold ended, by release, expiry or eviction, cannot be seen from outside.
 * @param {Lock | undefined} before
 * @param {Lock} lock
 * @param {string} kind
 * @returns {Story[]}
 */
export function storiesOf(before, lock, kind) {
  if (kind === 'renewed') {
    const owners = lock.holders.filter((now) => {
      const then = before?.holders.find(({ token }) => token === now.token);
      return then?.expiresAt !== now.expiresAt;
    });
    return owners.map(({ owner }) => story('renewed', `by ${owner}`));
  }
  // Of very many holders only the first are shown: who comes into view was not granted it just now.
  if (before && [before, lock].some((seen) => countHolders(seen) > seen.holders.length)) return [];
  const had = new Map(before?.holders.map((holder) => [holder.token, holder]));
  const has = new Map(lock.holders.map((holder) => [holder.token, holder]));
  /** @type {Story[]} */
  const stories = [];
  for (const [token, { owner, resting }] of had) {
    if (!resting && has.get(token)?.resting !== false)
      stories.push(story('ended', `for ${owner}, token ${token}`));
  }
  const granted = [...has].filter(([token, { resting }]) => !resting && !had.has(token));
  for (const [token, { owner }] of granted) stories.push(story('granted', `to ${owner}, token ${token}`));
  return stories.concat(
    lineStories(
      before,
      lock,
      granted.map(([, { owner }]) => owner),
    ),
  );
}

/**
 * Told apart by owner: holds are secret.
 * @param {Lock | undefined} before
 * @param {Lock} lock
 * @param {string[]} granted those who left the queue because their turn came
 * @returns {Story[]}
 */
function lineStories(before, lock, granted) {
  // Of a long queue only the front is shown: who comes into view did not come just now.
  if ([before, lock].some((seen) => seen && seen.waiting > seen.waiters.length)) return [];
  const came = lock.waiters.map(({ owner }) => owner);
  const left = (before?.waiters ?? []).map(({ owner }) => owner).filter((owner) => !removed(came, owner));
  return [
    ...left.filter((owner) => !removed(granted, owner)).map((owner) => story('left', `the queue: ${owner}`)),
    ...came.map((owner) => story('waits', owner)),
  ];
}

/**
 * @param {Story['what']} what
 * @param {string} text
 * @returns {Story}
 */
function story(what, text) {
  return { what, text };
}

/**
 * @param {string[]} list
 * @param {string} text
 */
function removed(list, text) {
  const at = list.indexOf(text);
  if (at >= 0) list.splice(at, 1);
  return at >= 0;
}
