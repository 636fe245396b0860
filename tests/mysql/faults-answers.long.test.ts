import { mysqlStore } from 'holdfast/mysql';
import { available, type MariadbServer, startMariadb } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { expectExclusion } from '../faults/bad-network.js';
import { clearScene } from '../scene.js';
import { mysql2Pool, tableIn } from './store-scene.js';

describe.runIf(available('mariadb'))('replies of MariaDB', { timeout: 60_000 }, () => {
  let server: MariadbServer;
  let url: string;
  beforeAll(async () => {
    server = await startMariadb();
    url = await server.createDatabase();
    await tableIn(url);
  });
  afterAll(async () => {
    await clearScene();
    await server?.stop();
  });

  const seed = Math.floor(Math.random() * 1_000_000);

  it(`F4, F5, F7, F27: lost, late and doubled at random: exclusive, with rising tokens, and nothing is left (seed ${seed})`, async () => {
    const stores = Array.from({ length: 4 }, () => mysqlStore(mysql2Pool(url)));
    const looking = mysqlStore(mysql2Pool(url));
    // The time of the run is not spent on connecting.
    await Promise.all([...stores, looking].map((store) => store.read('default/warm')));
    await expectExclusion({ stores, key: `k${seed}`, seed, runMs: 5_000, ttlMs: [300, 900] }, looking);
  });
});
