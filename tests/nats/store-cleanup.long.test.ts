/** Records of released keys go in time, and nothing else does. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { NatsConnection } from '@nats-io/transport-node';
import { bucketConfig, natsStore } from 'holdfast/nats';
import type { Store } from 'holdfast/protocol';
import { available, type NatsServer, startNats } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  api,
  claimOf,
  connectTo,
  openStore,
  recordOf,
  releaseOf,
  say,
  type Tapped,
  tapped,
} from './store-scene.js';

/** Released records are kept for 30 s. */
const KEPT_MS = 30_000;
const KEYS = 60;

describe.runIf(available('nats'))('cleaning up in NATS', () => {
  let server: NatsServer;
  let connection: NatsConnection;

  beforeAll(async () => {
    server = await startNats({ own: true });
    connection = await connectTo(server.url);
  });

  afterAll(async () => {
    await connection?.close();
    await server?.stop();
  });

  async function locksIn(bucket: string): Promise<readonly string[]> {
    const begin = `$KV.${bucket}.`;
    const { state } = await api(connection, `STREAM.INFO.KV_${bucket}`, { subjects_filter: `${begin}>` });
    const keys = Object.keys(state?.subjects ?? {}).map((subject) => subject.slice(begin.length));
    return keys.filter((key) => key !== '=clock').toSorted();
  }

  async function use(store: Store, bucket: string, other: Store): Promise<void> {
    const claims = Array.from({ length: KEYS }, (_, index) => claimOf(`once-${index}`, 'p'));
    await Promise.all(store.apply(claims));
    await Promise.all(store.apply(claims.map(releaseOf)));
    const held = claimOf('held', 'p', { ttlMs: 120_000 });
    const reused = claimOf('reused', 'p');
    await Promise.all(store.apply([held, reused]));
    await say(store, releaseOf(reused));
    // Somebody else has it by the time that our record might go.
    await say(other, claimOf('reused', 'other', { ttlMs: 120_000 }));
    expect(await locksIn(bucket), bucket).toHaveLength(KEYS + 2);
  }

  /** Later commands do it by the way, a few each. */
  async function goOn(tap: Tapped, store: Store): Promise<void> {
    const claim = claimOf('busy', 'p');
    for (let round = 0; round < KEYS; round++) {
      await say(store, { ...claim, hold: { process: 'p', number: round + 1 } });
      await say(store, { ...releaseOf(claim), hold: { process: 'p', number: round + 1 } });
    }
    await sleep(300);
    expect(tap.calls.filter((call) => /DELETE|PURGE/.test(call)).length).toBeGreaterThanOrEqual(KEYS);
  }

  it('P12: exactly the records released by this process go, in buckets of either kind', {
    timeout: 120_000,
  }, async () => {
    const strict = { ...bucketConfig({ bucket: 'strict' }), deny_delete: true };
    await api(connection, 'STREAM.CREATE.KV_strict', strict);
    const scenes = await Promise.all(
      ['plain', 'strict'].map(async (bucket) => {
        const tap = tapped(connection);
        const other = await openStore([server.url], { bucket });
        return { bucket, tap, store: natsStore(tap.connection, { bucket }), other };
      }),
    );
    for (const { store, bucket, other } of scenes) await use(store, bucket, other);
    await sleep(KEPT_MS / 2);
    for (const { store, tap } of scenes) {
      await say(store, claimOf('early', 'p'));
      expect(tap.calls.filter((call) => /DELETE|PURGE/.test(call))).toEqual([]);
    }
    await sleep(KEPT_MS / 2 + 1_000);
    for (const { store, tap, bucket, other } of scenes) {
      await goOn(tap, store);
      expect(await locksIn(bucket), bucket).toEqual(['busy', 'early', 'held', 'reused']);
      expect((await other.read('held'))?.holders).toHaveLength(1);
      expect((await other.read('reused'))?.holders[0]?.owner).toBe('other');
      // A key that was cleaned up costs one call again, and its token is higher.
      tap.calls.length = 0;
      const again = await say(store, claimOf('once-1', 'p', { hold: { process: 'p', number: 2 } }));
      expect(again.kind).toBe('granted');
      expect(tap.calls.filter((call) => !/DELETE|PURGE/.test(call))).toEqual([`$KV.${bucket}.once-1`]);
      expect((await recordOf(connection, 'once-1', bucket))?.text).toContain('"n":1');
      await Promise.all([store.close(), other.close()]);
    }
  });
});
