import { available, startDynamodb } from 'holdfast-test-servers';
import { describe, it } from 'vitest';
import { expectCrowdServed } from '../crowd/crowd.js';
import { clientOf, tableOn } from './store-scene.js';

describe.runIf(available('dynamodb', { own: true }))(
  'up to 200 clients wait for one key on DynamoDB Local, with its queue',
  () => {
    it('the holder keeps its lock through ten ttls, and each release has a next holder within a second', async ({
      onTestFinished,
    }) => {
      const server = await startDynamodb({ own: true });
      onTestFinished(() => server.stop());
      const client = clientOf(server.url);
      const table = await tableOn(client);
      client.destroy();
      const url = `${server.url}/${table}`;
      await expectCrowdServed({ url, processes: 4, clientsEach: 50, ttlMs: 6_000 }, onTestFinished);
    });
  },
);
