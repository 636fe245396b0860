/**
 * A number in a file that several processes raise under the lock. It is read, some time goes by, and it is written:
 * two holders at once would lose an update, and the number would end below the cycles that were made. A holder that lost
 * its lease in between does not write.
 */
import { openSync, readSync, writeFileSync, writeSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

const BYTES = 8;

/** @param {string} folder */
const fileOf = (folder) => join(folder, 'counter');

/** Before the processes start. @param {string} folder */
export function makeCounter(folder) {
  writeFileSync(fileOf(folder), Buffer.alloc(BYTES));
}

/** @param {string} folder @param {() => Promise<void>} meanwhile */
export function countUnderLock(folder, meanwhile) {
  const file = openSync(fileOf(folder), 'r+');
  const bytes = Buffer.alloc(BYTES);
  let counted = 0;
  return {
    counted: () => counted,
    async work(/** @type {() => boolean} */ isHeld = () => true) {
      readSync(file, bytes, 0, BYTES, 0);
      const seen = bytes.readDoubleLE();
      await meanwhile();
      if (!isHeld()) return;
      bytes.writeDoubleLE(seen + 1);
      writeSync(file, bytes, 0, BYTES, 0);
      counted += 1;
    },
  };
}

/** @param {string} folder */
export async function counterOf(folder) {
  return (await readFile(fileOf(folder))).readDoubleLE();
}
