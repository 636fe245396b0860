/** The locks that match a search, in order. Made in slices, then kept up to date change by change. */
import { endOf, has, showMetadata, wordsOf } from './board.js';
import { inSlices } from './time.js';

/**
 * @typedef {import('./board.js').Lock} Lock
 * @typedef {'name' | 'waiting' | 'ends'} Order
 */

/** Locks that are searched or compared before the clock is read again. */
const STEP = 250;

export class Selection {
  /** @param {() => void} onMade */
  constructor(onMade) {
    this.onMade = onMade;
    /** In order. While others are searched for, the last ones found. @type {Lock[]} */
    this.found = [];
    this.prefix = '';
    /** @type {string[]} */
    this.words = [];
    /** @type {Order} */
    this.order = 'name';
    /** Changes since the search began; null after its end. @type {[Lock | undefined, Lock | undefined][] | null} */
    this.late = null;
    this.cancel = () => {};
    /** @type {WeakMap<Lock, string>} */
    this.texts = new WeakMap();
  }

  /**
   * @param {Iterable<Lock>} locks
   * @param {string} namespace empty for all
   * @param {string} search
   * @param {Order} order
   */
  choose(locks, namespace, search, order) {
    this.prefix = namespace === '' ? '' : `${namespace}/`;
    this.words = wordsOf(search);
    this.order = order;
    this.late = [];
    this.cancel();
    this.cancel = inSlices(this.make([...locks]), (found) => {
      const late = this.late ?? [];
      this.late = null;
      this.found = found;
      for (const [before, lock] of late) this.change(before, lock);
      this.onMade();
    });
  }

  /**
   * @param {Lock | undefined} before
   * @param {Lock | undefined} lock
   */
  change(before, lock) {
    if (this.late) this.late.push([before, lock]);
    else {
      const at = before ? this.placeOf(before) : 0;
      if (before && this.found[at] === before) this.found.splice(at, 1);
      if (lock && this.matches(lock)) this.found.splice(this.placeOf(lock), 0, lock);
    }
  }

  /**
   * @param {Lock[]} locks
   * @returns {Generator<void, Lock[]>}
   */
  *make(locks) {
    const compare = (/** @type {Lock} */ a, /** @type {Lock} */ b) => this.compare(a, b);
    /** @type {Lock[][]} */
    let runs = [];
    for (let at = 0; at < locks.length; at += STEP) {
      runs.push(
        locks
          .slice(at, at + STEP)
          .filter((lock) => this.matches(lock))
          .sort(compare),
      );
      yield;
    }
    while (runs.length > 1) {
      const merged = [];
      for (let at = 0; at < runs.length; at += 2)
        merged.push(yield* merge(runs[at] ?? [], runs[at + 1] ?? [], compare));
      runs = merged;
    }
    return runs[0] ?? [];
  }

  /** @param {Lock} lock */
  matches(lock) {
    return (
      lock.key.startsWith(this.prefix) && (this.words.length === 0 || has(this.textOf(lock), this.words))
    );
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

  /**
   * @param {Lock} a
   * @param {Lock} b
   */
  compare(a, b) {
    if (this.order === 'waiting' && a.waiting !== b.waiting) return b.waiting - a.waiting;
    if (this.order === 'ends' && endOf(a) !== endOf(b)) return endOf(a) - endOf(b);
    return a.key < b.key ? -1 : 1;
  }

  /** Where it is, or would be. @param {Lock} lock */
  placeOf(lock) {
    let [from, to] = [0, this.found.length];
    while (from < to) {
      const at = (from + to) >> 1;
      const other = /** @type {Lock} */ (this.found[at]);
      if (other !== lock && this.compare(other, lock) < 0) from = at + 1;
      else to = at;
    }
    return from;
  }
}

/**
 * @param {Lock[]} a
 * @param {Lock[]} b
 * @param {(a: Lock, b: Lock) => number} compare
 * @returns {Generator<void, Lock[]>}
 */
function* merge(a, b, compare) {
  const [last, first] = [a.at(-1), b[0]];
  if (!last || !first || compare(last, first) < 0) return a.concat(b);
  const all = [];
  let [atA, atB] = [0, 0];
  while (all.length < a.length + b.length) {
    const [one, other] = [a[atA], b[atB]];
    if (one && (!other || compare(one, other) < 0)) {
      all.push(one);
      atA += 1;
    } else if (other) {
      all.push(other);
      atB += 1;
    }
    if (all.length % STEP === 0) yield;
  }
  return all;
}
