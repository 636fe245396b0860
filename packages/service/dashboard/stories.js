/** What changed between two looks at a lock, in words. */
import { countHolders } from './board.js';

/**
 * @typedef {import('./board.js').Lock} Lock
 * @typedef {{ what: 'granted' | 'ended' | 'waits' | 'left' | 'renewed', text: string }} Story
 */

/**
 * How a hold ended, by release, expiry or eviction, cannot be seen from outside.
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
 * @param {string[]} granted those who left the line because their turn came
 * @returns {Story[]}
 */
function lineStories(before, lock, granted) {
  // Of a long line only the front is shown: who comes into view did not come just now.
  if ([before, lock].some((seen) => seen && seen.waiting > seen.waiters.length)) return [];
  const came = lock.waiters.map(({ owner }) => owner);
  const left = (before?.waiters ?? []).map(({ owner }) => owner).filter((owner) => !removed(came, owner));
  return [
    ...left.filter((owner) => !removed(granted, owner)).map((owner) => story('left', `the line: ${owner}`)),
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
