import { available, startNats } from 'holdfast-test-servers';
import { describe, it } from 'vitest';
import { expectCrowdServed } from '../crowd/crowd.js';

describe.runIf(available('nats'))('300 clients wait for one key on NATS', () => {
  it('the holder keeps its lock through ten ttls, and each release has a next holder within a second', async ({
    onTestFinished,
  }) => {
    const server = await startNats({ own: true });
    onTestFinished(() => server.stop());
    const url = `${server.url}/holdfast`;
    await expectCrowdServed({ url, processes: 4, clientsEach: 75, ttlMs: 3_000 }, onTestFinished);
  });
});
