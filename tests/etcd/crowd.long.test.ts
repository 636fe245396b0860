import { available, startEtcd } from 'holdfast-test-servers';
import { describe, it } from 'vitest';
import { expectCrowdServed } from '../crowd/crowd.js';

describe.runIf(available('etcd', { own: true }))('300 clients wait for one key on etcd', () => {
  it('the holder keeps its lock through ten ttls, and each release has a next holder within a second', async ({
    onTestFinished,
  }) => {
    const server = await startEtcd({ own: true });
    onTestFinished(() => server.stop());
    const url = `etcd://${server.host}:${server.port}/holdfast`;
    await expectCrowdServed({ url, processes: 4, clientsEach: 75, ttlMs: 3_000 }, onTestFinished);
  });
});
