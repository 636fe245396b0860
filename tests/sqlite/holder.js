/** Holds a key until it is told otherwise: says "held", and "lost" if it is. With a command, runs and records that too. */
import { spawn } from 'node:child_process';
import { createLocks } from 'holdfast';
import { sqliteStore } from 'holdfast/sqlite';

const [file = '', ttlText, command, ...args] = process.argv.slice(2);
const store = sqliteStore(file);
const locks = createLocks(store);
const lease = await locks.acquire('k', { ttl: Number(ttlText) });
lease.signal.addEventListener('abort', () => console.log('lost'));
if (command) {
  const child = spawn(command, args, { stdio: 'ignore' });
  await store.recordProcess(child.pid ?? 0);
  console.log(`child ${child.pid}`);
}
console.log('held');
process.stdin.resume();
process.stdin.on('end', () => locks.close({ drain: 0 }).then(() => process.exit(0)));
