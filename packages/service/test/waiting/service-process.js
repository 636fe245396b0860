/** A service in a process of its own, on the SQLite file named. Says its address, and closes when told to end. */
import { sqliteStore } from 'holdfast/sqlite';
import { createService } from 'holdfast-service';

const [file = ''] = process.argv.slice(2);
const store = sqliteStore(file, { liveness: false });
const service = createService({ store });

process.on('SIGTERM', async () => {
  await service.close();
  await store.close();
  process.exit(0);
});
process.stdout.write(`${await service.listen()}\n`);
