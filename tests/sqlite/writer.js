/** Writes to the store as fast as it can, until it is killed. */
import { sqliteStore } from 'holdfast/sqlite';

/** @typedef {import('holdfast/protocol').Claim} Claim */
/** @typedef {import('holdfast/protocol').Release} Release */

const store = sqliteStore(process.argv[2] ?? '');

/** @type {(number: number) => Claim} */
const claimOf = (number) => ({
  kind: 'claim',
  key: `key-${number % 40}`,
  hold: { process: `writer-${process.pid}`, number },
  owner: 'writer',
  permits: 1,
  capacity: 1,
  ttlMs: 30_000,
  queue: true,
  inbox: null,
  metadata: JSON.stringify('x'.repeat(500)),
});

/** @type {(claim: Claim) => Release} */
const releaseOf = ({ key, hold }) => ({ kind: 'release', key, hold, minHoldMs: 0 });

for (let number = 1; ; number += 16) {
  const claims = Array.from({ length: 16 }, (_, at) => claimOf(number + at));
  await Promise.all(store.apply(claims));
  if (number === 1) console.log('ready');
  await Promise.all(store.apply(claims.map(releaseOf)));
}
