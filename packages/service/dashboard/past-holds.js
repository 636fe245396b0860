/** Ended holds as lines, and what a history says about itself. */
import { addressOf, keyElement, link, make } from './dom.js';
import { duration, moment } from './time.js';

/**
 * @typedef {{ key: string, owner: string | null, token: number | null, acquiredAt: number | null, endedAt: number, waitedMs: number | null,
 *   heldMs: number | null, ended: string, by: string | null, reason: string | null, seen: string }} PastHold
 * @typedef {{ service: string, since: number, keptMs: number, holds: PastHold[], next: string | null }} HistoryPage
 */

/**
 * @param {PastHold} hold
 * @param {boolean} isKeyShown
 */
export function pastHold(hold, isKeyShown) {
  const { key, owner, token, acquiredAt, endedAt, waitedMs, heldMs, ended, by, reason, seen } = hold;
  const time = make('time', 'muted', moment(endedAt));
  time.dateTime = new Date(endedAt).toISOString();
  const word = ended === 'unknown' ? 'ended elsewhere' : ended;
  const facts = [
    token === null ? '' : `token ${token}`,
    acquiredAt === null ? 'granted by another service' : `held ${span(heldMs)} since ${moment(acquiredAt)}`,
    waitedMs === null ? '' : `waited ${span(waitedMs)}`,
    seen === 'store' ? 'seen in the store' : '',
  ];
  return make(
    'li',
    ended,
    ...[time, ' '],
    ...(isKeyShown ? [link(addressOf('lock', { key }), keyElement(key)), ' '] : []),
    ...[make('b', '', owner ?? 'somebody'), ' ', make('span', 'what', word)],
    ...(by === null ? [] : [` by ${by}`]),
    ...(reason === null ? [] : [`: ${reason}`]),
    make('p', 'muted', facts.filter(Boolean).join(', ')),
  );
}

/**
 * Short ones in milliseconds.
 * @param {number | null} ms
 */
export function span(ms) {
  if (ms === null) return '?';
  // Whole hours without minutes.
  return ms < 1_000 ? `${ms} ms` : duration(ms).replace(/ 0+ \w+$/, '');
}

/** @param {{ service: string, since: number, keptMs: number }} history */
export function sourceText({ service, since, keptMs }) {
  return (
    `Seen by ${service} since ${moment(since)}, kept for ${span(keptMs)} at most. Other services on this store have ` +
    'histories of their own.'
  );
}
