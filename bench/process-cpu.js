/** The processor time of a server and its children. Only where there is /proc; elsewhere that figure is left out. */
import { readdirSync, readFileSync } from 'node:fs';

/** Of Linux, wherever Node runs on it. */
const TICKS_PER_SECOND = 100;

/** Microseconds so far, those of ended children included. @param {number} pid @returns {number | undefined} */
export function cpuUsOf(pid) {
  const own = statOf(pid);
  if (!own) return undefined;
  const children = readdirSync('/proc').flatMap((name) => {
    const stat = /^\d+$/.test(name) ? statOf(Number(name)) : undefined;
    return stat?.parent === pid ? [stat.ticks] : [];
  });
  const ticks = children.reduce((sum, each) => sum + each, own.ticks + own.ofEnded);
  return (ticks / TICKS_PER_SECOND) * 1e6;
}

/** @param {number} pid */
function statOf(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name, in brackets, may contain anything.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const of = (/** @type {number} */ index) => Number(fields[index]);
    return { parent: of(1), ticks: of(11) + of(12), ofEnded: of(13) + of(14) };
  } catch {
    return undefined;
  }
}
