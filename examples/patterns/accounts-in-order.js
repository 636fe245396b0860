// @ts-check
/**
 * Money from one account to another. Both are locked, in one order everywhere, so that two transfers in opposite
 * directions never wait for each other in a circle.
 *
 * For a fleet: HOLDFAST_STORE=postgres://HOST/DATABASE; write with the tokens of the leases (docs/guards.md).
 */
import { readFile, writeFile } from 'node:fs/promises';
import { createLocks, openStore } from 'holdfast';

const locks = createLocks(await openStore(process.env.HOLDFAST_STORE ?? 'sqlite:locks.db'));
const balance = async (/** @type {string} */ name) =>
  Number(await readFile(`${name}.txt`, 'utf8').catch(() => '100'));

const transfer = (/** @type {string} */ from, /** @type {string} */ to, /** @type {number} */ amount) =>
  locks.all([`account:${from}`, `account:${to}`]).withLock(async (leases) => {
    const [before, after] = [await balance(from), await balance(to)];
    leases.assertHeld();
    await writeFile(`${from}.txt`, String(before - amount));
    await writeFile(`${to}.txt`, String(after + amount));
  });
await Promise.all(
  Array.from({ length: 20 }, (_, n) => (n % 2 ? transfer('ann', 'bob', 3) : transfer('bob', 'ann', 2))),
);
console.log('ann', await balance('ann'), 'bob', await balance('bob'));
await locks.close();
