/** Asks for the key once and says whether it was free; if it was, gives it back. */
import { createLocks } from 'holdfast';
import { sqliteStore } from 'holdfast/sqlite';

const locks = createLocks(sqliteStore(process.argv[2] ?? ''));
const lease = await locks.tryAcquire('k');
console.log(lease ? `free ${lease.token}` : 'busy');
await lease?.release();
await locks.close();
