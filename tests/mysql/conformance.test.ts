import { type MysqlClient, mysqlStore } from 'holdfast/mysql';
import { available, type MariadbServer, startMariadb } from 'holdfast-test-servers';
import type mysql from 'mysql2/promise';
import { afterAll, beforeAll, describe } from 'vitest';
import { clearScene } from '../scene.js';
import { callbackPool, harnessOf, mariadbPool, mysql2Pool, runSuite, tableIn } from './store-scene.js';

describe.runIf(available('mariadb'))('MariaDB', () => {
  let server: MariadbServer;
  let plain: mysql.Pool;
  let pools: readonly MysqlClient[] = [];
  let opened = 0;

  beforeAll(async () => {
    server = await startMariadb();
    const url = await server.createDatabase();
    await tableIn(url);
    plain = mysql2Pool(url);
    pools = [plain, mariadbPool(url), callbackPool(url)];
  });

  afterAll(async () => {
    await clearScene();
    await server?.stop();
  });

  runSuite(
    harnessOf(
      'with a pool of each driver in turn',
      () => mysqlStore(pools[opened++ % pools.length] ?? plain),
      () => plain,
    ),
    1_000,
    { isSlow: true },
  );
});
