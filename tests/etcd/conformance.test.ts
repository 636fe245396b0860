import type { EtcdClient } from 'holdfast/etcd';
import { available, type EtcdServer, startEtcd } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe } from 'vitest';
import { harnessOf, runSuite, warmClients } from './store-scene.js';

describe.runIf(available('etcd'))('one etcd server', () => {
  let server: EtcdServer;
  let clients: readonly EtcdClient[];

  beforeAll(async () => {
    server = await startEtcd();
    clients = await warmClients([server.url]);
  });

  afterAll(() => server?.stop());

  runSuite(
    harnessOf(
      'etcd',
      () => server.url,
      () => clients,
    ),
    1_000,
    // More at once wait for its disk, and on a busy machine for so long that an answer counts as lost.
    { atOnce: 30 },
  );
});
