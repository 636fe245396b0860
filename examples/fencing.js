// @ts-check
/**
 * Fencing with the SQL guard. A holder is stopped between its check and its write, longer than its ttl. The next
 * holder writes. Then the first one goes on and writes what it had in mind.
 *
 * The plain row takes the late write, and the update of the next holder is lost. The guarded row refuses it.
 */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { createLocks, LeaseLostError, openStore } from 'holdfast';
import { sqlGuard } from 'holdfast/fences';

const guard = sqlGuard();

/** @param {string} folder */
function openBank(folder) {
  const bank = new DatabaseSync(join(folder, 'bank.db'));
  bank.exec(
    'CREATE TABLE IF NOT EXISTS account (name TEXT PRIMARY KEY, amount INTEGER, fence BIGINT DEFAULT 0)',
  );
  bank.exec("INSERT OR IGNORE INTO account (name, amount) VALUES ('plain', 0), ('guarded', 0)");
  const read = bank.prepare('SELECT amount FROM account WHERE name = ?');
  const write = bank.prepare('UPDATE account SET amount = ? WHERE name = ?');
  const writeGuarded = bank.prepare(
    `UPDATE account SET amount = ?, ${guard.stamp()} WHERE name = 'guarded' AND ${guard.notStale()}`,
  );
  return {
    /** @param {string} name */
    amount: (name) => Number(/** @type {{ amount: number }} */ (read.get(name)).amount),
    /** @param {number} amount */
    setPlain: (amount) => write.run(amount, 'plain'),
    /** Throws LeaseLostError when a later holder has written. @param {number} amount @param {number} token */
    setGuarded: (amount, token) => guard.check(writeGuarded.run(amount, token, token).changes, token),
    close: () => bank.close(),
  };
}

/** Adds 1, but sleeps at the worst moment. @param {string} folder */
async function pausedHolder(folder) {
  const bank = openBank(folder);
  const locks = createLocks(await openStore(`sqlite:${join(folder, 'locks.db')}`), { owner: 'paused' });
  const lease = await locks.acquire('account', { ttl: '1s' });
  const [plain, guarded] = [bank.amount('plain') + 1, bank.amount('guarded') + 1];
  lease.assertHeld();
  await new Promise((resolve) => process.send?.('checked', resolve));
  process.kill(process.pid, 'SIGSTOP');

  bank.setPlain(plain);
  assert.throws(() => bank.setGuarded(guarded, lease.token), LeaseLostError);
  console.log(`paused holder: plain row written; guarded row refused token ${lease.token}`);
  console.log(`paused holder: held is ${lease.held}`);
  assert.equal(lease.held, false);
  bank.close();
  await locks.close();
  process.disconnect();
}

/** Adds 10 while the other is stopped. @param {string} folder */
async function main(folder) {
  const bank = openBank(folder);
  const locks = createLocks(await openStore(`sqlite:${join(folder, 'locks.db')}`), { owner: 'next' });
  const paused = fork(import.meta.filename, ['paused', folder]);
  const exit = once(paused, 'exit');
  try {
    await Promise.race([once(paused, 'message'), exit]);
    await locks.withLock(
      'account',
      async ({ token }) => {
        bank.setPlain(bank.amount('plain') + 10);
        bank.setGuarded(bank.amount('guarded') + 10, token);
        console.log(`next holder: both rows written with token ${token}`);
      },
      { wait: '20s' },
    );
  } finally {
    paused.kill('SIGCONT');
  }
  const [code] = await exit;
  console.log(`plain row: ${bank.amount('plain')}, the 10 is lost; guarded row: ${bank.amount('guarded')}`);
  assert.equal(code, 0);
  assert.equal(bank.amount('plain'), 1, 'without a guard the late write wins');
  assert.equal(bank.amount('guarded'), 10, 'with the guard it is refused');
  bank.close();
  await locks.close();
}

const [, , role, shared] = process.argv;
if (role === 'paused' && shared) await pausedHolder(shared);
else {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-fencing-'));
  await main(folder).finally(() => rmSync(folder, { recursive: true, force: true }));
}
