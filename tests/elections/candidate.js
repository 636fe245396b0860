/**
 * One candidate of an election. While it leads it writes to a guarded resource again and again, and says when it began, when
 * it last believed to lead, and when it resigns. Each line of its input is a word to resign. Ends with its input.
 */
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { DatabaseSync } from '@photostructure/sqlite';
import { createLocks, LeaseLostError, openStore } from 'holdfast';
import { sqlGuard } from 'holdfast/fences';
import { machineMs } from '../faults/turns.js';

const [url = '', key = '', owner = '', ttl = '', resource = ''] = process.argv.slice(2);
const database = new DatabaseSync(resource);
database.exec('PRAGMA busy_timeout = 10000');
const guard = sqlGuard({ dialect: 'sqlite' });

/**
 * Written in one transaction with the guard: rows are in the order of the tokens that were accepted.
 *
 * @param {number} token
 */
function write(token) {
  database.exec('BEGIN IMMEDIATE');
  try {
    const { text, values } = guard.raise('led', token);
    guard.check(database.prepare(text).run(...values).changes, token);
    database.prepare('INSERT INTO written (token) VALUES (?)').run(token);
    database.exec('COMMIT');
  } catch (error) {
    database.exec('ROLLBACK');
    throw error;
  }
}

/** @param {import('holdfast').Lease} term */
function beat(term) {
  if (!term.held) return;
  console.log(`beat ${term.token} ${machineMs()}`);
  try {
    write(term.token);
  } catch (error) {
    if (!(error instanceof LeaseLostError)) throw error;
    // Refused by the guard, so there is a later leader: this one has to know by now.
    console.log(term.held ? `TWO ${term.token}` : `refused ${term.token}`);
  }
}

let resigns = false;
createInterface({ input: process.stdin })
  .on('line', () => {
    resigns = true;
  })
  .on('close', () => void locks.close({ drain: 0 }).then(() => process.exit()));

const locks = createLocks(await openStore(url), { owner });
console.log('ready');
for await (const term of locks.elect(key, { ttl: Number(ttl) })) {
  console.log(`began ${term.token} ${machineMs()}`);
  while (!resigns && !term.signal.aborted) {
    beat(term);
    await sleep(5);
  }
  resigns = false;
  console.log(`${term.held ? 'resigned' : 'lost'} ${term.token} ${machineMs()}`);
}
