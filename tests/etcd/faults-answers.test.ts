import { etcdClient, etcdStore } from 'holdfast/etcd';
import { available, type EtcdServer, startEtcd } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { expectExclusion } from '../faults/bad-network.js';

describe.runIf(available('etcd'))('answers of etcd', () => {
  let server: EtcdServer;
  beforeAll(async () => {
    server = await startEtcd();
  });
  afterAll(() => server?.stop());

  const drawn = Math.floor(Math.random() * 1_000_000);

  it.each([drawn, drawn + 1])(
    'F4, F5, F7, F27: lost, late and doubled at random: exclusive, with rising tokens, and nothing is left (seed %i)',
    async (seed) => {
      const [looking, ...stores] = Array.from({ length: 5 }, () =>
        etcdStore(etcdClient({ endpoints: [server.url] }), { prefix: 'faulty/' }),
      );
      if (!looking) throw new Error('No store.');
      const contention = {
        stores,
        key: `k${seed}`,
        seed,
        runMs: 3_000,
        ttlMs: [600, 2_000],
        waitMs: 10_000,
      } as const;
      await expectExclusion(contention, looking);
    },
  );
});
