/** Arithmetic on measurements. */

/** 1 when all got the same, 1/n when one got everything. @param {readonly number[]} counts */
export function jainIndex(counts) {
  const sum = counts.reduce((total, count) => total + count, 0);
  const squares = counts.reduce((total, count) => total + count * count, 0);
  return squares === 0 ? 0 : (sum * sum) / (counts.length * squares);
}

/** The value that so large a share of them does not exceed. @param {readonly number[]} values @param {number} share */
export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

/** @param {readonly number[]} values */
function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  const upper = sorted[Math.floor(middle)] ?? Number.NaN;
  return Number.isInteger(middle) ? (upper + (sorted[middle - 1] ?? Number.NaN)) / 2 : upper;
}

/**
 * The median of every figure by itself.
 * @param {readonly import('./types.d.ts').Figures[]} repetitions
 * @returns {import('./types.d.ts').Figures}
 */
export function medians(repetitions) {
  const names = Object.keys(repetitions[0] ?? {});
  return Object.fromEntries(
    names.map((name) => [name, median(repetitions.map((figures) => figures[name] ?? Number.NaN))]),
  );
}
