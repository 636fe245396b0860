// @ts-check
/**
 * Money from one account to another. Both are locked, in one order everywhere, so that two transfers in opposite
 * directions never wait for each other in a circle.
 *
 * For a fleet: HOLDFAST_STORE=postgres://HOST/DATABASE; write with the tokens of the leases (docs/guards.md).
 */
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { createLocks, openStore } from 'holdfast';

const locks = createLocks(await openStore(process.env.HOLDFAST_STORE ?? 'sqlite:locks.db'));

/** @param {string} of */
const balance = async (of) => (existsSync(`${of}.txt`) ? Number(await readFile(`${of}.txt`, 'utf8')) : 100);

/** @type {(from: string, to: string, amount: number) => Promise<void>} */
const transfer = (from, to, amount) =>
  locks.all([`account:${from}`, `account:${to}`]).withLock(async (leases) => {
    const [left, more] = [(await balance(from)) - amount, (await balance(to)) + amount];
    leases.assertHeld();
    await writeFile(`${from}.txt`, String(left));
    await writeFile(`${to}.txt`, String(more));
  });

const both = () => [transfer('ann', 'bob', 3), transfer('bob', 'ann', 2)];
await Promise.all([...Array(10)].flatMap(both));
await locks.close();
