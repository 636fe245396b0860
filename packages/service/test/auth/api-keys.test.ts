import { createHash } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  lstatSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { digestIn, hashOf, idIn, isKeyOf, newKey } from '../../src/auth/api-key.js';
import { createApiKey, createAuth, listApiKeys, revokeApiKeys } from '../../src/auth/index.js';
import { clearScene, pause, stage, until } from '../scene.js';
import { bearer, freshKeyFile, keyFile } from './issuer.js';

afterEach(clearScene);

describe('an API key', () => {
  it('has a form that is known by sight, an id that finds it, and 256 bits that nobody knows', () => {
    const { id, text, hash } = newKey();
    expect(text).toMatch(/^hfk_[0-9a-f]{12}_[\w-]{44}$/);
    expect(idIn(text)).toBe(id);
    expect(hash).toBe(`sha256:${createHash('sha256').update(text).digest('base64url')}`);
    expect(new Set(Array.from({ length: 500 }, () => newKey().text)).size).toBe(500);
  });

  it('is that of its hash alone, and never that of no hash', () => {
    const { text, hash } = newKey();
    expect(isKeyOf(text, digestIn(hash))).toBe(true);
    expect(isKeyOf(`${text.slice(0, -1)}${text.endsWith('A') ? 'B' : 'A'}`, digestIn(hash))).toBe(false);
    expect(isKeyOf(newKey().text, digestIn(hash))).toBe(false);
    expect(isKeyOf(text, null)).toBe(false);
    expect(isKeyOf('nobody', null)).toBe(false);
  });
});

describe('the file of keys', () => {
  it('has hashes and no secret, and only its owner may read it', async () => {
    const path = freshKeyFile();
    const { text, id } = await createApiKey(
      { path, by: 'ada' },
      { name: 'billing', rights: ['lock:billing'] },
    );
    const file = readFileSync(path, 'utf8');
    expect(file).not.toContain(text.slice(17));
    expect(JSON.parse(file)).toMatchObject({
      version: 1,
      keys: [{ id, name: 'billing', hash: hashOf(text), rights: ['lock:billing'] }],
    });
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(dirname(path))).toEqual(['keys.json']);
  });

  it('stays readable for whom it was when it changes, and nobody else may write it', async () => {
    const { path } = await keyFile({ one: ['read:*'] });
    chmodSync(path, 0o664);
    await createApiKey({ path, by: 'ada' }, { name: 'two', rights: ['read:*'] });
    expect(statSync(path).mode & 0o777).toBe(0o644);
  });

  it.runIf(process.getuid?.() === 0)('keeps its owner when root changes it', async () => {
    const { path } = await keyFile({ one: ['read:*'] });
    chownSync(path, 1_000, 1_001);
    await revokeApiKeys({ path, by: 'root' }, 'one');
    expect(statSync(path)).toMatchObject({ uid: 1_000, gid: 1_001 });
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it('is changed through a link to it, which stays one', async () => {
    const { path } = await keyFile({ one: ['read:*'] });
    const link = freshKeyFile();
    symlinkSync(path, link);
    await revokeApiKeys({ path: link, by: 'ada' }, 'one');
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(listApiKeys(path)).toMatchObject([{ name: 'one', alive: false }]);
  });

  it('is listed without secrets and without hashes', async () => {
    const { path, keys } = await keyFile({ one: ['read:*'], two: ['admin:*'] });
    const listed = JSON.stringify(listApiKeys(path));
    expect(JSON.parse(listed)).toMatchObject([
      { name: 'one', rights: ['read:*'], alive: true, expiresAt: null, revokedAt: null },
      { name: 'two', rights: ['admin:*'], alive: true },
    ]);
    for (const text of Object.values(keys)) {
      expect(listed).not.toContain(text.slice(17));
      expect(listed).not.toContain(hashOf(text));
    }
  });

  it('takes two keys alive of one name, for rotation; the second has the rights of the first', async () => {
    const path = freshKeyFile();
    const change = { path, by: 'ada' };
    const first = await createApiKey(change, { name: 'billing', rights: ['lock:billing'] });
    const second = await createApiKey(change, { name: 'billing' });
    expect(second.rights).toEqual(['lock:billing']);
    await expect(createApiKey(change, { name: 'billing' })).rejects.toThrow(/2 valid API keys.*revoke one/);
    expect((await revokeApiKeys(change, first.id)).map(({ id }) => id)).toEqual([first.id]);
    await createApiKey(change, { name: 'billing' });
    expect(listApiKeys(path).map(({ alive }) => alive)).toEqual([false, true, true]);
    expect(await revokeApiKeys(change, 'billing')).toHaveLength(2);
    await expect(revokeApiKeys(change, 'nobody')).rejects.toThrow(/no API key "nobody"/);
  });

  it('a key without rights, or with a name or rights that are not usable, is not made', async () => {
    const change = { path: freshKeyFile(), by: 'ada' };
    await expect(createApiKey(change, { name: 'a' })).rejects.toThrow(/Name the rights of the API key/);
    await expect(createApiKey(change, { name: 'a b', rights: ['read:*'] })).rejects.toThrow(/is invalid/);
    await expect(createApiKey(change, { name: 'a', rights: ['root:*'] })).rejects.toThrow(/is not a right/);
    expect(listApiKeys(change.path)).toEqual([]);
  });

  it('changed by many at once loses no change', async () => {
    const change = { path: freshKeyFile(), by: 'ada' };
    const names = Array.from({ length: 20 }, (_, number) => `name-${number}`);
    await Promise.all(names.map((name) => createApiKey(change, { name, rights: ['read:*'] })));
    expect(
      listApiKeys(change.path)
        .map(({ name }) => name)
        .sort(),
    ).toEqual(names.sort());
  });

  it('that is damaged stops the start, with what is wrong', async () => {
    const { path } = await keyFile({ one: ['read:*'] });
    const good = readFileSync(path, 'utf8');
    const damages: readonly (readonly [string, RegExp])[] = [
      ['', /not JSON/],
      [good.slice(0, -20), /not JSON/],
      ['[]', /no list of keys/],
      [good.replace('"version": 1', '"version": 2'), /version/],
      [good.replace('read:*', 'root:*'), /key 1.*is not a right/],
      [good.replace('sha256:', 'plain:'), /key 1.*hash/],
      [good.replace('"rights"', '"wrongs"'), /"wrongs" is not known/],
    ];
    for (const [text, words] of damages) {
      writeFileSync(path, text);
      expect(() => createAuth({ apiKeys: path })).toThrow(words);
    }
    rmSync(path);
    expect(() => createAuth({ apiKeys: path })).toThrow(/holdfast api-key create/);
  });
});

describe('keys at a running service', () => {
  const look = '/v2/locks/own/a';

  it('lets in who has one, and nobody else', async () => {
    const { path, keys } = await keyFile({ ada: ['lock:own'] });
    const { call } = await stage({ auth: createAuth({ apiKeys: path }) });
    expect((await call('GET', look, undefined, bearer(keys.ada))).status).toBe(200);
    expect((await call('GET', look)).status).toBe(401);
    const wrong = [
      newKey().text,
      `${keys.ada.slice(0, -1)}${keys.ada.endsWith('A') ? 'B' : 'A'}`,
      'hfk_',
      `hfk_${'x'.repeat(4_000)}`,
      keys.ada.slice(0, -1),
      `${keys.ada}A`,
    ];
    for (const text of wrong) {
      const { status, body, headers } = await call('GET', look, undefined, bearer(text));
      expect([status, body.code]).toEqual([401, 'unauthorized']);
      expect(headers.get('www-authenticate')).toMatch(/^Bearer/);
    }
    for (const authorization of [
      '',
      'Bearer',
      'Basic YTpi',
      keys.ada,
      `Bearer ${keys.ada} x`,
      `Token ${keys.ada}`,
    ]) {
      expect((await call('GET', look, undefined, { authorization })).status).toBe(401);
    }
  });

  it('a key made later works, and a revoked one ends, within a second, without a restart', async () => {
    const { path, keys } = await keyFile({ ada: ['lock:own'] });
    const { call } = await stage({ auth: createAuth({ apiKeys: path }) });
    const statusOf = async (text: string): Promise<number> =>
      (await call('GET', look, undefined, bearer(text))).status;
    expect(await statusOf(keys.ada)).toBe(200);
    const { text } = await createApiKey({ path, by: 'ada' }, { name: 'ada' });
    await pause(1_000);
    expect([await statusOf(text), await statusOf(keys.ada)]).toEqual([200, 200]);
    await revokeApiKeys({ path, by: 'ada' }, idIn(keys.ada) ?? '');
    await pause(1_000);
    expect([await statusOf(text), await statusOf(keys.ada)]).toEqual([200, 401]);
  });

  it('a key that expires is no longer good', async () => {
    const path = freshKeyFile();
    const ttlMs = 3_600_000;
    const { text } = await createApiKey({ path, by: 'ada' }, { name: 'ada', rights: ['read:*'], ttlMs });
    const { call } = await stage({ auth: createAuth({ apiKeys: path }) });
    const statusNow = async () => (await call('GET', look, undefined, bearer(text))).status;
    expect(await statusNow()).toBe(200);
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + ttlMs });
    try {
      expect(await statusNow()).toBe(401);
    } finally {
      vi.useRealTimers();
    }
  });

  it('a file that is gone or damaged lets nobody in: 503, not 401; and again when it is back', async () => {
    const { path, keys } = await keyFile({ ada: ['lock:own'] });
    const { call, lines } = await stage({ auth: createAuth({ apiKeys: path }) });
    const statusOf = async (): Promise<number> =>
      (await call('GET', look, undefined, bearer(keys.ada))).status;
    const good = readFileSync(path, 'utf8');
    for (const damage of [
      () => rmSync(path),
      () => writeFileSync(path, '{'),
      () => writeFileSync(path, ''),
    ]) {
      expect(await statusOf()).toBe(200);
      damage();
      await until(async () => (await statusOf()) === 503, 'the damage is seen');
      writeFileSync(path, good);
      await until(async () => (await statusOf()) === 200, 'the keys are back');
    }
    expect(lines.join('')).not.toContain(keys.ada.slice(17));
  });

  it('both keys of one name are the same principal: what one acquires again is the same grant', async () => {
    const { path, keys } = await keyFile({ ada: ['lock:own'] });
    const { text } = await createApiKey({ path, by: 'ada' }, { name: 'ada' });
    const { post } = await stage({ auth: createAuth({ apiKeys: path }) });
    const again = { 'idempotency-key': 'f3b1a8c0-rotation-test' };
    const first = await post('/v2/locks/own/a/acquire', { ttl: '30s' }, { ...bearer(keys.ada), ...again });
    const second = await post('/v2/locks/own/a/acquire', { ttl: '30s' }, { ...bearer(text), ...again });
    expect([first.status, second.status]).toEqual([200, 200]);
    expect([second.body.hold, second.body.token, second.body.owner]).toEqual([
      first.body.hold,
      first.body.token,
      'ada',
    ]);
  });
});
