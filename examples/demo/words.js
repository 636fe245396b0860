/** What happened, in words; colour only where asked for. */

/** @typedef {import('./contest.js').ContestEvent} ContestEvent */

const COLOURS = { amber: 33, birch: 36, cedar: 35, dune: 34 };

/** @param {string} text @param {number | string} code @param {boolean} colour */
export function paint(text, code, colour) {
  return colour ? `\x1b[${code}m${text}\x1b[0m` : text;
}

/** In the colour of this worker. @param {string} name @param {string} text @param {boolean} colour */
export function paintAs(name, text, colour) {
  const code = Object.entries(COLOURS).find(([known]) => known === name)?.[1] ?? 37;
  return paint(text, code, colour);
}

/** @param {string} name @param {boolean} colour */
export function paintName(name, colour) {
  return paintAs(name, name.padEnd(6), colour);
}

/** @param {number} ms */
export function seconds(ms) {
  return `${(ms / 1_000).toFixed(2)} s`;
}

/** @param {ContestEvent} event @param {boolean} colour */
export function sentence(event, colour) {
  const at = seconds(event.atMs).padStart(8);
  return `${paint(at, 2, colour)}  ${paintName(event.name, colour)}  ${what(event, colour)}`;
}

/** @param {ContestEvent} event @param {boolean} colour */
function what(event, colour) {
  switch (event.kind) {
    case 'joined':
      return `joined, process ${event.pid}`;
    case 'left':
      return 'left';
    case 'killed':
      return paint(`killed with kill -9 while holding token ${event.token}`, '1;31', colour);
    case 'acquired':
      return `acquired token ${event.token}, waited ${Math.round(event.waitedMs)} ms`;
    case 'took over':
      return paint(
        `took over token ${event.token}, ${Math.round(event.afterMs)} ms after ${event.from} was killed`,
        '1;32',
        colour,
      );
    case 'released':
      return paint(`released token ${event.token}`, 2, colour);
  }
}
