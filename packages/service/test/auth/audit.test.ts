import { readFileSync, statSync } from 'node:fs';
import type { Store } from 'holdfast';
import { memoryStore } from 'holdfast/memory';
import { pino } from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import {
  auditEvictions,
  auditFile,
  auditLog,
  createAuth,
  createKey,
  revokeKeys,
} from '../../src/auth/index.js';
import { Bulletin } from '../../src/index.js';
import { clearScene, freshFile, stage } from '../scene.js';
import { bearer, freshKeyFile, keyFile } from './issuer.js';

afterEach(clearScene);

function linesOf(path: string): Readonly<Record<string, unknown>>[] {
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
}

const silent = pino({ enabled: false });

describe('the audit log', () => {
  it('has a line for every eviction: who, what, when, and how many lost the lock', async () => {
    const { path, keys } = await keyFile({ ada: ['admin:own'], bob: ['lock:own'] });
    const { post, service } = await stage({ auth: createAuth({ keys: path }) });
    const file = freshFile();
    auditEvictions(service.bulletin, auditFile(file), silent);
    await post('/v2/locks/own/a/acquire', { ttl: '30s' }, bearer(keys.bob));
    const { headers } = await post('/v2/locks/own/a/evict', {}, bearer(keys.ada));
    await post('/v2/locks/own/a/evict', {}, bearer(keys.bob));
    await post('/v2/batch', { commands: [{ kind: 'evict', key: 'own/a', upToToken: 99 }] }, bearer(keys.ada));
    const lines = linesOf(file);
    const requestId = headers.get('x-request-id');
    expect(lines).toMatchObject([
      { event: 'evict', by: 'key:ada', key: 'own/a', evicted: 1, requestId },
      { event: 'evict', by: 'key:ada', key: 'own/a', evicted: 0 },
    ]);
    for (const { at } of lines) expect(Math.abs(Date.parse(String(at)) - Date.now())).toBeLessThan(60_000);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it('has an eviction too whose outcome nobody knows', async () => {
    const store = memoryStore();
    const apply: Store['apply'] = (commands) => commands.map(() => Promise.reject(new Error('away')));
    const away: Store = { ...store, apply, close: () => store.close() };
    const { post, service } = await stage({ store: away });
    const file = freshFile();
    auditEvictions(service.bulletin, auditFile(file), silent);
    expect((await post('/v2/locks/own/a/evict', { upToToken: 5 })).status).toBe(503);
    expect(linesOf(file)).toMatchObject([{ event: 'evict', by: 'anonymous', key: 'own/a', evicted: null }]);
  });

  it('has a line for every key that was made or revoked, without its secret', async () => {
    const file = freshFile();
    const change = { path: freshKeyFile(), by: 'operator', audit: auditFile(file) };
    const { id, text } = await createKey(change, { name: 'ada', rights: ['read:*'] });
    await revokeKeys(change, 'ada');
    await revokeKeys(change, 'ada');
    expect(linesOf(file)).toMatchObject([
      { event: 'key-create', by: 'operator', id, name: 'ada', rights: ['read:*'] },
      { event: 'key-revoke', by: 'operator', id, name: 'ada' },
    ]);
    expect(readFileSync(file, 'utf8')).not.toContain(text.slice(17));
  });

  it('that cannot be written keeps a key from being made, and an eviction is in the log at least', async () => {
    const broken = auditFile('/no/such/folder/audit.jsonl');
    const change = { path: freshKeyFile(), by: 'operator', audit: broken };
    await expect(createKey(change, { name: 'ada', rights: ['read:*'] })).rejects.toThrow(/cannot be written/);
    const lines: string[] = [];
    const log = pino({}, { write: (line: string) => lines.push(line) });
    const bulletin = new Bulletin();
    auditEvictions(bulletin, broken, log);
    bulletin.tell('evicted', { key: 'a/b', count: 1, principal: 'key:ada', requestId: 'r' });
    expect(lines.join('')).toMatch(/"by":"key:ada".*the audit log cannot be written/);
  });

  it('may go to the log', () => {
    const lines: string[] = [];
    const log = pino({}, { write: (line: string) => lines.push(line) });
    auditLog(log)({ event: 'evict', by: 'key:ada', key: 'a/b', evicted: 2 });
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ msg: 'audit', audit: { by: 'key:ada', evicted: 2 } });
  });
});
