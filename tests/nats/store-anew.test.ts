/** A bucket that is made anew counts its revisions from the beginning: what was known of the old one must not count. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks } from 'holdfast';
import { available, type NatsServer, startNats } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { api, connectTo, openStore } from './store-scene.js';

/** How long a bucket counts as the same without a look; see bucket.ts. */
const SAME_MS = 10_000;

describe.runIf(available('nats', { own: true }))('a bucket in NATS that was deleted and made anew', () => {
  let server: NatsServer;

  beforeAll(async () => {
    server = await startNats({ own: true });
  });

  afterAll(async () => {
    await server?.stop();
  });

  it('P8, F13: a revision of the old one is not taken for the same one of the new', async () => {
    const connection = await connectTo(server.url);
    const [idle, busy] = [
      createLocks(await openStore([server.url])),
      createLocks(await openStore([server.url])),
    ];
    try {
      await (await idle.acquire('job')).release();
      const remembered = (await api(connection, 'STREAM.INFO.KV_holdfast')).state?.last_seq ?? 0;
      expect(remembered).toBeGreaterThan(0);
      await api(connection, 'STREAM.DELETE.KV_holdfast');
      const held = await busy.acquire('job', { ttl: '2m', wait: '10s' });
      for (let tries = 0; tries < 50; tries++) {
        const { state } = await api(connection, 'STREAM.INFO.KV_holdfast');
        if ((state?.last_seq ?? 0) >= remembered) break;
        await held.renew('2m');
      }
      await sleep(SAME_MS + 500);
      expect(await idle.tryAcquire('job'), 'the idle one wrote over a live lock').toBeNull();
      held.assertHeld();
      await held.renew();
      await held.release();
    } finally {
      await Promise.all([idle.close(), busy.close()]);
      await connection.close();
    }
  }, 60_000);
});
