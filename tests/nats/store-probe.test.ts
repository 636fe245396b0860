/** What the store says of the server before anything goes wrong. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { NatsConnection } from '@nats-io/transport-node';
import { natsStore } from 'holdfast/nats';
import type { Guarantees } from 'holdfast/protocol';
import { available, type NatsServer, startNats } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { connectTo } from './store-scene.js';

describe.runIf(available('nats'))('probing NATS', () => {
  let server: NatsServer;
  let connection: NatsConnection;
  let found: Guarantees;

  beforeAll(async () => {
    server = await startNats({ own: true });
    connection = await connectTo(server.url);
    found = await natsStore(connection).probe();
  });

  afterAll(async () => {
    await connection?.close();
    await server?.stop();
  });

  const textOf = (level: string): string =>
    found.findings
      .filter((finding) => finding.level === level)
      .map(({ text }) => text)
      .join('\n');

  it('names the server and its time, and how well that is known', () => {
    expect(found.server).toMatch(/^NATS 2\.\d+\.\d+$/);
    expect(Math.abs(found.now - Date.now())).toBeLessThan(60_000);
    expect(textOf('good')).toMatch(/known here to ±\d+ ms: no client's clock matters/);
  });

  it('says what a power failure costs, and what a crash of the server does not', () => {
    expect(textOf('note')).toMatch(
      /A crash of the server process loses no lock\..*sync_interval.*a power failure may lose/s,
    );
    expect(textOf('note')).toMatch(/There is one copy: while its server is away, nothing can be locked/);
  });

  it('says that TTLs of keys are not needed, and after which time leftovers go', () => {
    expect(textOf('good')).toMatch(/Nothing depends on TTLs of single keys/);
    expect(textOf('good')).toMatch(/crashed processes leave go after 360 hours/);
  });

  it('has nothing to warn of where all is well', () => {
    expect(textOf('warning')).toBe('');
  });

  it('names the domain of JetStream, because other domains have other locks', async () => {
    expect(textOf('note')).not.toContain('domain');
    const folder = await mkdtemp(join(tmpdir(), 'domain-'));
    const hub = await startNats({
      config: { jetstream: `{ store_dir: ${JSON.stringify(folder)}, domain: hub }` },
    });
    onTestFinished(async () => {
      await hub.stop();
      await rm(folder, { recursive: true });
    });
    const other = await connectTo(hub.url);
    const { findings } = await natsStore(other).probe();
    expect(findings.map(({ text }) => text).join('\n')).toMatch(
      /locks of the JetStream domain "hub"\..*leaf node/,
    );
    await other.close();
  });
});
