import type { NatsConnection } from '@nats-io/transport-node';
import { available, type NatsServer, startNats } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe } from 'vitest';
import { connectTo, harnessOf, runSuite } from './store-scene.js';

describe.runIf(available('nats'))('one NATS server', () => {
  let server: NatsServer;
  let plain: NatsConnection;

  beforeAll(async () => {
    server = await startNats();
    plain = await connectTo(server.url);
  });

  afterAll(async () => {
    await plain?.close();
    await server?.stop();
  });

  runSuite(
    harnessOf(
      'NATS',
      () => [server.url],
      () => plain,
    ),
    1_000,
    // Side by side they are so slow that waiters give way to each other.
    { isSlow: true },
  );
});
