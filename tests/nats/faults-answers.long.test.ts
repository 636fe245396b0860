import type { NatsConnection } from '@nats-io/transport-node';
import { natsStore } from 'holdfast/nats';
import { available, type NatsServer, startNats } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { expectExclusion } from '../faults/bad-network.js';
import { connectTo } from './store-scene.js';

describe.runIf(available('nats'))('answers of NATS', { timeout: 60_000 }, () => {
  let server: NatsServer;
  let connections: readonly NatsConnection[];
  beforeAll(async () => {
    server = await startNats();
    connections = await Promise.all(Array.from({ length: 5 }, () => connectTo(server.url)));
  });
  afterAll(async () => {
    await Promise.all(connections?.map((connection) => connection.close()) ?? []);
    await server?.stop();
  });

  const drawn = Math.floor(Math.random() * 1_000_000);

  it.each([drawn, drawn + 1])(
    'F4, F5, F7, F27: lost, late and doubled at random: exclusive, with rising tokens, and nothing is left (seed %i)',
    async (seed) => {
      const [looking, ...stores] = connections.map((connection) =>
        natsStore(connection, { bucket: 'faulty' }),
      );
      if (!looking) throw new Error('No store.');
      await expectExclusion({ stores, key: `k${seed}`, seed, runMs: 3_000, ttlMs: [150, 600] }, looking);
    },
  );
});
