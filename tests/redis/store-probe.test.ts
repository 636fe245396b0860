/** What `probe` says of servers that are set up well and badly. */
import type { Finding } from 'holdfast/protocol';
import { redisStore } from 'holdfast/redis';
import { available, startRedis, startRedisSentinel } from 'holdfast-test-servers';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { describe, expect, it } from 'vitest';

async function probed(
  config: Readonly<Record<string, string>>,
  options: object = {},
  prepare: (client: Redis) => Promise<unknown> = async () => undefined,
): Promise<readonly Finding[]> {
  const server = await startRedis({ config });
  const client = new Redis(server.url);
  await prepare(client);
  const probing = new Redis({ ...options, host: server.host, port: server.port });
  try {
    const { server: name, now, findings } = await redisStore(probing).probe();
    expect(name).toMatch(/^(Redis|Valkey) \d/);
    expect(Math.abs(now - Date.now())).toBeLessThan(60_000);
    return findings;
  } finally {
    probing.disconnect();
    client.disconnect();
    await server.stop();
  }
}

function textsOf(findings: readonly Finding[], level: Finding['level']): string {
  return findings
    .filter((finding) => finding.level === level)
    .map(({ text }) => text)
    .join('\n');
}

describe.runIf(available('redis'))('probe', () => {
  it('F13: warns where nothing is written to disk', async () => {
    const findings = await probed({ save: '""', appendonly: 'no' });
    expect(textsOf(findings, 'warning')).toContain('a restart loses every lock');
    expect(textsOf(findings, 'good')).toContain("The server's clock decides");
    expect(textsOf(findings, 'good')).toContain('No lock is deleted');
  });

  it('F13: tells snapshots, a second of loss, and no loss apart', async () => {
    expect(textsOf(await probed({ save: '3600 1' }), 'warning')).toContain('Only snapshots are written');
    const everysec = await probed({ appendonly: 'yes', appendfsync: 'everysec' });
    expect(textsOf(everysec, 'note')).toContain('about once a second');
    expect(textsOf(everysec, 'warning')).toBe('');
    const always = await probed({ appendonly: 'yes', appendfsync: 'always' });
    expect(textsOf(always, 'good')).toContain('a crash loses no lock');
  });

  it('warns of eviction, of all keys and of those that expire, which ours do', async () => {
    for (const policy of ['allkeys-lru', 'volatile-ttl']) {
      const findings = await probed({ maxmemory: '100mb', 'maxmemory-policy': policy });
      expect(textsOf(findings, 'warning')).toContain(
        `${policy}: when memory is full, it may delete locks in use`,
      );
    }
    const full = await probed({ maxmemory: '100mb', 'maxmemory-policy': 'noeviction' });
    expect(textsOf(full, 'note')).toContain('locks cannot be acquired');
  });

  it('says what it could not read', async () => {
    const options = { username: 'plain', password: 'secret' };
    const findings = await probed({}, options, (client) =>
      client.acl('SETUSER', 'plain', 'on', '>secret', '~*', '&*', '+@all', '-config'),
    );
    expect(textsOf(findings, 'warning')).toContain('CONFIG may not be read');
  });

  it("names the client's settings that make commands late or double, as notes", async () => {
    const usual = textsOf(await probed({}), 'note');
    for (const name of ['enableOfflineQueue', 'autoResendUnfulfilledCommands', 'commandTimeout']) {
      expect(usual).toContain(name);
    }
    expect(textsOf(await probed({}, { maxRetriesPerRequest: null }), 'note')).toContain(
      'maxRetriesPerRequest',
    );
    const careful = {
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      commandTimeout: 1_000,
    };
    const server = await startRedis({ own: true });
    const client = new Redis(server.url, careful);
    await expect.poll(() => client.status).toBe('ready');
    expect(textsOf((await redisStore(client).probe()).findings, 'note')).toBe('');
    client.disconnect();
    const nodeRedis = createClient({ url: server.url });
    await nodeRedis.connect();
    const noted = textsOf((await redisStore(nodeRedis).probe()).findings, 'note');
    expect(noted).toContain('disableOfflineQueue');
    nodeRedis.destroy();
    await server.stop();
  });

  it('F13: says what a failover costs, and that a replica cannot store locks', async () => {
    const sentinel = await startRedisSentinel({ sentinels: 1 });
    const master = new Redis(sentinel.master.url);
    const replica = new Redis(sentinel.replica.url);
    try {
      const { findings } = await redisStore(master).probe();
      expect(textsOf(findings, 'note')).toContain('a failover may lose the last grants');
      const behind = await redisStore(replica).probe();
      expect(textsOf(behind.findings, 'warning')).toContain('This server is a replica');
    } finally {
      master.disconnect();
      replica.disconnect();
      await sentinel.stop();
    }
  });
});
