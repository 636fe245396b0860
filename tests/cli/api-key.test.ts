import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { usePlace } from './holdfast.js';

const place = usePlace();
const keys = (): string => join(place.folder, 'state', 'keys.json');
const run = (...args: string[]) => place.run(['api-key', ...args, '--api-keys', keys()]);
const KEY = /^hfk_[0-9a-f]{12}_[\w-]{44}\n$/;

describe('holdfast key', () => {
  it('create shows the key once, alone on stdout; the list and the files do not have it', async () => {
    const made = await run('create', 'billing', '--rights', 'lock:billing, read:team-*');
    expect([made.status, KEY.test(made.stdout)]).toEqual([0, true]);
    expect(made.stderr).toContain('It is shown only once');
    const secret = made.stdout.trim().slice(17);
    expect(made.stderr).not.toContain(secret);
    const listed = await run('list');
    expect(listed.stdout).toMatch(
      /ID +NAME +STATE +CREATED +RIGHTS\n[0-9a-f]{12} +billing +valid .* lock:billing, read:team-\*/,
    );
    const audit = readFileSync(join(place.folder, 'state', 'audit.jsonl'), 'utf8');
    expect(JSON.parse(audit)).toMatchObject({ event: 'key-create', name: 'billing' });
    for (const text of [listed.stdout, audit, readFileSync(keys(), 'utf8')])
      expect(text).not.toContain(secret);
  });

  it('a second key takes over the rights; a third has to wait until one is revoked', async () => {
    await run('create', 'billing', '--rights', 'lock:billing');
    const second = await run('create', 'billing', '--expires', '1h', '--json');
    const { id, key, expiresAt, rights } = JSON.parse(second.stdout) as Record<string, string>;
    expect([KEY.test(`${key}\n`), rights]).toEqual([true, ['lock:billing']]);
    expect(Date.parse(String(expiresAt))).toBeGreaterThan(Date.now());
    const third = await run('create', 'billing');
    expect([third.status, third.stdout]).toEqual([64, '']);
    expect(third.stderr).toMatch(/2 valid API keys/);
    expect((await run('revoke', String(id))).stdout).toBe(`Revoked ${id} of "billing".\n`);
    expect((await run('revoke', String(id))).stdout).toContain('was already revoked');
    const states = JSON.parse((await run('list', '--json')).stdout) as { alive: boolean }[];
    expect(states.map(({ alive }) => alive)).toEqual([true, false]);
  });

  it('writes the audit log beside the keys, also when the variable for it is empty', async () => {
    const create = ['api-key', 'create', 'billing', '--rights', 'lock:billing', '--api-keys', keys()];
    expect((await place.run(create, { HOLDFAST_AUDIT: '' })).status).toBe(0);
    expect(existsSync(join(place.folder, 'state', 'audit.jsonl'))).toBe(true);
  });

  it('says what is wrong, and makes nothing', async () => {
    const wrong: readonly (readonly [readonly string[], RegExp])[] = [
      [['make'], /api-key has create, list and revoke/],
      [['create'], /needs a NAME/],
      [['revoke'], /needs an ID or a NAME/],
      [['list', 'all'], /takes no argument/],
      [['create', 'a'], /Name the rights of the API key/],
      [['create', 'a', '--rights', 'root:*'], /is not a right/],
      [['create', 'a', '--rights', 'read:*', '--expires', '0'], /longer than 0/],
      [['revoke', 'nobody'], /no API key "nobody"/],
    ];
    for (const [args, words] of wrong) {
      const { status, stdout, stderr } = await run(...args);
      expect([args, status, stdout]).toEqual([args, 64, '']);
      expect(stderr).toMatch(words);
    }
    expect(existsSync(keys())).toBe(false);
  });
});

describe('a service that runs', () => {
  it('goes by the keys as they are: one made later works, one revoked ends, within a second', async () => {
    const first = (await run('create', 'ada', '--rights', 'lock:own')).stdout.trim();
    const service = place.start(['serve', '--port', '0', '--api-keys', keys(), '--log-level', 'info']);
    const url = await new Promise<string>((resolve) => {
      let said = '';
      service.child.stderr?.on('data', (chunk) => {
        said += String(chunk);
        const found = /http:\/\/127\.0\.0\.1:\d+/.exec(said);
        if (found) resolve(found[0]);
      });
    });
    const statusOf = async (key: string): Promise<number> => {
      const response = await fetch(`${url}/v2/locks/own/a`, { headers: { authorization: `Bearer ${key}` } });
      await response.text();
      return response.status;
    };
    expect(await statusOf(first)).toBe(200);
    const second = (await run('create', 'ada')).stdout.trim();
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect([await statusOf(first), await statusOf(second)]).toEqual([200, 200]);
    await run('revoke', first.slice(4, 16));
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect([await statusOf(first), await statusOf(second)]).toEqual([401, 200]);
    service.kill('SIGTERM');
    const { status, stdout, stderr } = await service.ended;
    expect(status).toBe(0);
    for (const key of [first, second]) expect(stdout + stderr).not.toContain(key.slice(17));
    expect(stdout).toContain('"principal":"key:ada"');
  });
});
