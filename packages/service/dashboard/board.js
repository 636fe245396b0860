/** The locks as the service last sent them, and counts of them. */
import { splitKey } from './dom.js';

/**
 * @typedef {{ owner: string, permits: number, capacity: number, token: number, acquiredAt: number, expiresAt: number, metadata: unknown, resting: boolean }} Holder
 * @typedef {{ owner: string, permits: number, capacity: number, since: number, woken: boolean }} Waiter
 * `holding` and `waiting` count all of them, also those that are not sent.
 * @typedef {{ key: string, now: number, token: number, holders: Holder[], holding: number, waiters: Waiter[], waiting: number }} Lock
 */

/** Locks and what is counted of them, kept up to date change by change: no change goes through all of 100,000 locks. */
class Known {
  constructor() {
    /** @type {Map<string, Lock>} */
    this.locks = new Map();
    /** How many locks there are in each namespace. @type {Map<string, number>} */
    this.namespaces = new Map();
    this.held = 0;
    this.waiting = 0;
    /** Since when the longest waiter of each contended lock waits. @type {Map<string, number>} */
    this.contended = new Map();
  }

  /**
   * @param {string} key
   * @param {Lock | null} lock
   */
  put(key, lock) {
    const before = this.locks.get(key);
    if (before) this.count(before, -1);
    if (lock) this.locks.set(key, lock);
    else this.locks.delete(key);
    if (lock) this.count(lock, 1);
    return before;
  }

  /**
   * @param {Lock} lock
   * @param {1 | -1} by
   */
  count({ key, holders, waiters, waiting }, by) {
    const { namespace } = splitKey(key);
    const count = (this.namespaces.get(namespace) ?? 0) + by;
    if (count > 0) this.namespaces.set(namespace, count);
    else this.namespaces.delete(namespace);
    if (holders.length > 0) this.held += by;
    this.waiting += waiting * by;
    if (waiting > 0 && by === 1) this.contended.set(key, Math.min(...waiters.map(({ since }) => since)));
    else this.contended.delete(key);
  }
}

export class Board {
  constructor() {
    this.known = new Known();
    /** What a new connection tells, until it has told everything. @type {Known | null} */
    this.incoming = null;
  }

  get locks() {
    return this.known.locks;
  }

  begin() {
    this.incoming = new Known();
  }

  /** Everything was told: what is not among it is gone. */
  complete() {
    this.known = this.incoming ?? this.known;
    this.incoming = null;
  }

  /**
   * Gives what was known of the lock before; null while everything is told for the first time.
   * @param {Lock} lock
   * @param {boolean} isGone
   * @returns {{ before: Lock | undefined } | null}
   */
  put(lock, isGone) {
    const before = (this.incoming ?? this.known).put(lock.key, isGone ? null : lock);
    return this.incoming ? null : { before };
  }

  /** @param {number} nowMs */
  figures(nowMs) {
    const { held, waiting, contended } = this.known;
    let sinceMs = nowMs;
    for (const ms of contended.values()) sinceMs = Math.min(sinceMs, ms);
    return { held, waiting, contended: contended.size, longestMs: nowMs - sinceMs };
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

/** @param {Lock} lock */
export function endOf({ holders }) {
  return Math.min(...holders.map(({ expiresAt }) => expiresAt));
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
  if (before && [before, lock].some((seen) => seen.holding > seen.holders.length)) return [];
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
    queueStories(
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
function queueStories(before, lock, granted) {
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
