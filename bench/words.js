/** Numbers as people read them. */

/** @param {number} value */
export function number(value) {
  const digits = Math.abs(value) >= 100 || Number.isInteger(value) ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString('en-US', { maximumFractionDigits: digits });
}

/** @param {number} value */
export function ratio(value) {
  if (Number.isInteger(value)) return `${value}×`;
  return `${value >= 100 ? value.toFixed(0) : value.toPrecision(value >= 1 ? 3 : 2)}×`;
}

/** @param {number} share */
export function percent(share) {
  return `${(share * 100).toFixed(1)} %`;
}
