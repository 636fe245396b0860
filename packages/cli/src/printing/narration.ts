/**
 * Prints the events of a command's locks as lines on stderr: with --verbose all events; otherwise, only at a terminal, the
 * holders that the command waits for. A user at a terminal has to know why nothing happens; a log does not.
 */
import type { LockEvents, Locks } from 'holdfast';
import type { Options } from '../options/options.js';
import { formatDuration, names } from './describe.js';
import { quote, type Terminal } from './terminal.js';

type Texts = { readonly [N in keyof LockEvents]?: (event: LockEvents[N]) => string };

const WAITING: Texts = {
  waiting({ key, holders, position }) {
    const held = holders.length === 0 ? '' : `, held by ${names(holders.map(({ owner }) => owner))}`;
    const place = position === null ? '' : `; place ${position + 1} in the queue`;
    return `waiting for ${quote(key)}${held}${place}`;
  },
};

const ALL: Texts = {
  ...WAITING,
  acquired: ({ key, token, waitedMs }) =>
    `acquired ${quote(key)} after ${formatDuration(waitedMs)}, token ${token}`,
  renewed: ({ key, remainingMs }) => `renewed ${quote(key)}, ${formatDuration(remainingMs)} left`,
  jeopardy: ({ key, remainingMs }) =>
    `${quote(key)} is not renewed yet: the store does not answer; ${formatDuration(remainingMs)} left`,
  released: ({ key, heldMs }) => `released ${quote(key)}, held for ${formatDuration(heldMs)}`,
  'handed-off': ({ key }) => `${quote(key)} stays locked until its ttl is over, or until it is released`,
  adopted: ({ key, token, remainingMs }) =>
    `holds ${quote(key)} again, token ${token}, ${formatDuration(remainingMs)} left`,
};

/** Returns a function that ends it. */
export function narrate(locks: Locks, options: Options, terminal: Terminal): () => void {
  const texts = options.has('verbose') ? ALL : terminal.errIsTty ? WAITING : {};
  const stops = (Object.keys(texts) as (keyof LockEvents)[]).map((name) =>
    follow(locks, texts, name, terminal),
  );
  return () => {
    for (const stop of stops) stop();
  };
}

function follow<N extends keyof LockEvents>(
  locks: Locks,
  texts: Texts,
  name: N,
  terminal: Terminal,
): () => void {
  return locks.on(name, (event) => {
    const text = texts[name]?.(event);
    if (text !== undefined) terminal.note(text);
  });
}
