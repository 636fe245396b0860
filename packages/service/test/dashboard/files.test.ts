import { readdirSync, readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { createAuth } from '../../src/auth/index.js';
import { FETCHED_LATER } from '../../src/dashboard/index.js';
import { bearer, keyFile } from '../auth/issuer.js';
import { clearScene, stage } from '../scene.js';

const FOLDER = new URL('../../dashboard/', import.meta.url);
const FILES = readdirSync(FOLDER);

afterEach(clearScene);

function source(file: string): string {
  return readFileSync(new URL(file, FOLDER), 'utf8');
}

function withoutComments(text: string): string {
  return text.replaceAll(/\/\*.*?\*\/|^\s*\/\/[^\n]*$/gms, '');
}

function withoutSpace(text: string): string {
  return text.replaceAll(/\s/g, '');
}

describe('the files of the dashboard', () => {
  it('are served to everybody, each with its type, and are never taken for another', async () => {
    const { path } = await keyFile({ admin: ['admin:*'] });
    const scene = await stage({ auth: createAuth({ apiKeys: path }) });
    const types: Record<string, string> = {
      html: 'text/html',
      css: 'text/css',
      js: 'text/javascript',
      svg: 'image/svg',
    };
    for (const file of FILES) {
      const { status, headers, text } = await scene.get(file === 'index.html' ? '/' : `/dashboard/${file}`);
      expect([file, status]).toEqual([file, 200]);
      expect(headers.get('content-type')).toContain(types[file.split('.').at(-1) ?? '']);
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(text).not.toMatch(/^\s|^\/\/|^\/\*.*\*\/$/m);
      expect(withoutSpace(withoutComments(text))).toBe(withoutSpace(withoutComments(source(file))));
    }
  });

  it('lose no text with their indentation: none has lines', () => {
    for (const file of FILES.filter((name) => name.endsWith('.js'))) {
      const open = source(file)
        .split('\n')
        .filter((line) => (line.split('`').length - 1) % 2 === 1);
      expect([file, open]).toEqual([file, []]);
    }
  });

  it('are all named by the page, so that they are fetched at once, except for those that are fetched later', () => {
    const named = [...source('index.html').matchAll(/(?:href|src)="dashboard\/([^"]+)"/g)].map(
      ([, name]) => name,
    );
    expect([...new Set(named), ...FETCHED_LATER, 'index.html'].sort()).toEqual([...FILES].sort());
  });

  it('are not sent again to who has them', async () => {
    const scene = await stage();
    const first = await scene.get('/');
    const etag = first.headers.get('etag') ?? '';
    expect(etag).not.toBe('');
    const again = await scene.call('GET', '/', undefined, { 'if-none-match': `"other", ${etag}` });
    expect([again.status, again.text]).toEqual([304, '']);
    expect((await scene.call('GET', '/', undefined, { 'if-none-match': '"other"' })).status).toBe(200);
  });

  it('are packed for who takes that', async () => {
    const scene = await stage();
    const encoding = async (accepted: string): Promise<string | null> =>
      (await scene.call('GET', '/', undefined, { 'accept-encoding': accepted })).headers.get(
        'content-encoding',
      );
    expect(await encoding('gzip, deflate, br, zstd')).toBe('br');
    expect(await encoding('br;q=0, gzip')).toBe('gzip');
    expect(await encoding('gzip, deflate')).toBe('gzip');
    expect(await encoding('brotli, x-gzip')).toBe(null);
    expect(await encoding('identity')).toBe(null);
    expect(await encoding('gzip;q=0, br; q=0.0')).toBe(null);
  });

  it('let nothing run, load or send but what is theirs', async () => {
    const scene = await stage();
    const { headers, text } = await scene.get('/');
    const policy = headers.get('content-security-policy') ?? '';
    for (const part of [
      "default-src 'none'",
      "script-src 'self'",
      "connect-src 'self'",
      "form-action 'none'",
    ]) {
      expect(policy).toContain(part);
    }
    expect(policy).not.toContain('unsafe');
    expect(policy).toContain("frame-ancestors 'none'");
    expect(text).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=|https?:/);
    expect(headers.get('referrer-policy')).toBe('no-referrer');
  });

  it('are the only ones: no other name reaches a file', async () => {
    const scene = await stage();
    for (const name of [
      'nothing.js',
      '..%2fpackage.json',
      '%2e%2e%2fpackage.json',
      'main.js%00',
      '__proto__',
    ]) {
      expect([name, (await scene.get(`/dashboard/${name}`)).status]).toEqual([name, 404]);
    }
  });

  it('are not there where the dashboard is not wanted', async () => {
    const scene = await stage({ dashboard: false });
    for (const path of ['/', '/dashboard/main.js', '/dashboard/session']) {
      expect([path, (await scene.get(path)).status]).toEqual([path, 404]);
    }
  });

  it('never make elements of text', () => {
    const risky =
      /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser|srcdoc/;
    for (const file of FILES) expect([file, risky.test(source(file))]).toEqual([file, false]);
  });
});

describe('who looks at the dashboard', () => {
  it('is told who they are, and whether they may evict in a namespace', async () => {
    const { path, keys } = await keyFile({ ada: ['admin:own', 'read:other'] });
    const scene = await stage({ auth: createAuth({ apiKeys: path }) });
    const ask = async (query: string): Promise<unknown> =>
      (await scene.call('GET', `/dashboard/session${query}`, undefined, bearer(keys.ada))).body;
    expect(await ask('?namespace=own')).toMatchObject({ principal: 'key:ada', admin: true });
    expect(await ask('?namespace=other')).toMatchObject({ principal: 'key:ada', admin: false });
    expect(await ask('')).toMatchObject({ principal: 'key:ada', admin: false });
    expect((await scene.get('/dashboard/session')).status).toBe(401);
  });
});
