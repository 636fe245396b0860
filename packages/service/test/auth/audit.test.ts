import { mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Store } from 'holdfast';
import { memoryStore } from 'holdfast/memory';
import { pino } from 'pino';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { auditFile, createApiKey, createAuth, revokeApiKeys } from '../../src/auth/index.js';
import { configFrom } from '../../src/config/index.js';
import { type AuditEntry, auditLog, serve } from '../../src/index.js';
import { clearScene, freshFile, stage } from '../scene.js';
import { bearer, freshKeyFile, keyFile } from './issuer.js';

afterEach(clearScene);

function linesOf(path: string): Readonly<Record<string, unknown>>[] {
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
}

/** A file in a folder of its own: without the folder, nothing can be written. */
function fileInFolder(): { readonly folder: string; readonly file: string } {
  const folder = `${freshFile()}-audit`;
  mkdirSync(folder);
  return { folder, file: join(folder, 'audit.jsonl') };
}

describe('the audit log', () => {
  it('has two lines for every eviction, before and after it: who, from where, what, when, and how many lost the lock', async () => {
    const { path, keys } = await keyFile({ ada: ['admin:own'], bob: ['lock:own'] });
    const file = freshFile();
    const { post } = await stage({ auth: createAuth({ apiKeys: path }), audit: auditFile(file) });
    await post('/v2/locks/own/a/acquire', { ttl: '30s' }, bearer(keys.bob));
    const { headers } = await post('/v2/locks/own/a/evict', {}, bearer(keys.ada));
    await post('/v2/locks/own/a/evict', {}, bearer(keys.bob));
    await post('/v2/batch', { commands: [{ kind: 'evict', key: 'own/a', upToToken: 99 }] }, bearer(keys.ada));
    const lines = linesOf(file);
    const requestId = headers.get('x-request-id');
    const asked = { by: 'key:ada', keyId: keys.ada?.split('_')[1], address: '127.0.0.1', key: 'own/a' };
    expect(lines).toMatchObject([
      { event: 'evict', ...asked, requestId, upToToken: expect.any(Number) },
      { event: 'evicted', ...asked, requestId, evicted: 1 },
      { event: 'evict', ...asked, upToToken: 99 },
      { event: 'evicted', ...asked, evicted: 0 },
    ]);
    for (const { at } of lines) expect(Math.abs(Date.parse(String(at)) - Date.now())).toBeLessThan(60_000);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it('has the token and the reason of an eviction, by either route', async () => {
    const file = freshFile();
    const { post, acquire } = await stage({ audit: auditFile(file) });
    const reason = 'retired: "näme"';
    const { token } = await acquire('own/a');
    await post('/v2/locks/own/a/evict', { token, reason });
    const command = { kind: 'evict', key: 'own/a', fromToken: 5, upToToken: 9, reason };
    await post('/v2/batch', { commands: [command] });
    await post('/v2/batch', { commands: [{ ...command, fromToken: 0, reason: null }] });
    const evictions = linesOf(file).filter(({ event }) => event === 'evict');
    expect(evictions).toMatchObject([
      { key: 'own/a', fromToken: token, upToToken: token, reason },
      { key: 'own/a', fromToken: 5, upToToken: 9, reason },
      { key: 'own/a', upToToken: 9 },
    ]);
    expect(Object.keys(evictions[2] ?? {})).not.toContain('reason');
    for (const wrong of ['', 'two\nlines', 'x'.repeat(257), 7]) {
      expect((await post('/v2/batch', { commands: [{ ...command, reason: wrong }] })).status).toBe(400);
    }
    // 256 characters, but 1,024 bytes.
    const long = { ...command, reason: '😀'.repeat(256) };
    const { body } = await post('/v2/batch', { commands: [long, command] });
    expect(body.replies).toMatchObject([{ problem: { code: 'invalid-argument' } }, { kind: 'evicted' }]);
    expect(linesOf(file).filter(({ event }) => event === 'evict')).toHaveLength(4);
  });

  it('has an eviction too whose outcome nobody knows', async () => {
    const store = memoryStore();
    const apply: Store['apply'] = (commands) => commands.map(() => Promise.reject(new Error('away')));
    const away: Store = { ...store, apply, close: () => store.close() };
    const file = freshFile();
    const { post } = await stage({ store: away, audit: auditFile(file) });
    expect((await post('/v2/locks/own/a/evict', { upToToken: 5 })).status).toBe(503);
    expect(linesOf(file)).toMatchObject([
      { event: 'evict', by: 'anonymous', key: 'own/a', upToToken: 5 },
      { event: 'evicted', by: 'anonymous', key: 'own/a', evicted: null },
    ]);
  });

  it('that can no longer be written: evictions are refused with 503, before anybody is evicted', async () => {
    const { folder, file } = fileInFolder();
    const { post, acquire, store } = await stage({ audit: auditFile(file) });
    const { token } = await acquire('own/a');
    rmSync(folder, { recursive: true });
    const { status, body, headers } = await post('/v2/locks/own/a/evict', {});
    expect([status, body.code, headers.get('retry-after')]).toEqual([503, 'audit-unavailable', '1']);
    const batch = await post('/v2/batch', { commands: [{ kind: 'evict', key: 'own/a', upToToken: token }] });
    expect(batch.body.replies).toMatchObject([{ problem: { code: 'audit-unavailable' } }]);
    expect((await store.read('own/a'))?.holders).toHaveLength(1);
    mkdirSync(folder);
    expect((await post('/v2/locks/own/a/evict', {})).body.evicted).toBe(1);
  });

  it('that cannot be written keeps the service from starting', async () => {
    const flags = {
      audit: join(fileInFolder().folder, 'none', 'audit.jsonl'),
      port: '0',
      'log-level': 'silent',
    };
    const starting = serve(configFrom({ flags, defaultStore: () => 'memory:' }));
    await expect(starting).rejects.toThrow(/audit log .* cannot be written: ENOENT/);
  });

  it('has a line for every key that was made or revoked, without its secret', async () => {
    const file = freshFile();
    const change = { path: freshKeyFile(), by: 'operator', audit: auditFile(file) };
    const { id, text } = await createApiKey(change, { name: 'ada', rights: ['read:*'] });
    await revokeApiKeys(change, 'ada');
    await revokeApiKeys(change, 'ada');
    expect(linesOf(file)).toMatchObject([
      { event: 'key-create', by: 'operator', id, name: 'ada', rights: ['read:*'] },
      { event: 'key-revoke', by: 'operator', id, name: 'ada' },
    ]);
    expect(readFileSync(file, 'utf8')).not.toContain(text.slice(17));
  });

  it('that cannot be written keeps a key from being made', async () => {
    const { folder, file } = fileInFolder();
    const change = { path: freshKeyFile(), by: 'operator', audit: auditFile(file) };
    rmSync(folder, { recursive: true });
    await expect(createApiKey(change, { name: 'ada', rights: ['read:*'] })).rejects.toThrow(
      /cannot be written/,
    );
  });

  it.each(['info', 'warn', 'silent'])('may go to a log, whatever its level is: %s', (level) => {
    const lines: string[] = [];
    const log = pino({ level }, { write: (line: string) => lines.push(line) });
    void auditLog(log)({ event: 'key-revoke', by: 'operator', id: '0', name: 'ada', rights: [] });
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      msg: 'audit',
      audit: { by: 'operator', name: 'ada' },
    });
  });

  it('that is written later is awaited before the eviction', async () => {
    const entries: string[] = [];
    let settle: (error?: Error) => void = () => undefined;
    const audit = ({ event }: AuditEntry): Promise<void> => {
      entries.push(event);
      return new Promise((resolve, reject) => {
        settle = (error) => (error ? reject(error) : resolve());
      });
    };
    const { post, acquire, store } = await stage({ audit });
    await acquire('own/a');
    const ended = async (error?: Error) => {
      const evicting = post('/v2/locks/own/a/evict', {});
      const before = entries.length;
      await vi.waitUntil(() => entries.length > before, 60_000);
      expect((await store.read('own/a'))?.holders).toHaveLength(1);
      settle(error);
      return (await evicting).status;
    };
    expect(await ended(new Error('away'))).toBe(503);
    expect((await store.read('own/a'))?.holders).toHaveLength(1);
    expect(await ended()).toBe(200);
    expect(entries).toEqual(['evict', 'evict', 'evicted']);
  });
});
