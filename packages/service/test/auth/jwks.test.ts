import { writeFileSync } from 'node:fs';
import { pino } from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import { createAuth, type JwtOptions } from '../../src/auth/index.js';
import { clearScene, freshFile, pause, type Stage, stage, until } from '../scene.js';
import { AUDIENCE, bearer, type Issuer, issuer } from './issuer.js';

afterEach(clearScene);

async function guarded(from: Issuer, more: Partial<JwtOptions>): Promise<Stage> {
  return await stage({ auth: createAuth({ jwt: { issuer: from.url, audience: AUDIENCE, ...more } }) });
}

async function statusOf({ call }: Stage, token: string): Promise<number> {
  return (await call('GET', '/v2/locks/own/a', undefined, bearer(token))).status;
}

const UNREACHABLE = 'http://127.0.0.1:65535/jwks';

describe('the keys of the issuer', () => {
  it('are found by discovery, from a URL, a file, or as they stand in the configuration', async () => {
    const from = await issuer();
    const file = freshFile();
    writeFileSync(file, JSON.stringify(from.jwks));
    const sources = [`${from.url}/jwks`, file, `file://${file}`, JSON.stringify(from.jwks)];
    for (const jwks of sources) {
      expect([jwks, await statusOf(await guarded(from, { jwks }), await from.token())]).toEqual([jwks, 200]);
    }
    expect(await statusOf(await guarded(from, {}), await from.token())).toBe(200);
    expect(from.asked).toEqual(['/jwks', '/.well-known/openid-configuration', '/jwks']);
  });

  it('are asked for once, by however many at once, and kept', async () => {
    const from = await issuer();
    const scene = await guarded(from, { jwks: `${from.url}/jwks` });
    const tokens = await Promise.all(Array.from({ length: 20 }, () => from.token()));
    const statuses = await Promise.all(tokens.map((token) => statusOf(scene, token)));
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(from.asked).toEqual(['/jwks']);
  });

  it('that cannot be had are 503, never 401: nobody can say that the token is wrong', async () => {
    const from = await issuer();
    for (const jwks of [UNREACHABLE, '/no/such/file.json', undefined]) {
      if (jwks === undefined) from.failing = 500;
      const scene = await guarded(from, jwks === undefined ? {} : { jwks });
      const { status, body, headers } = await scene.call(
        'GET',
        '/v2/locks/own/a',
        undefined,
        bearer(await from.token()),
      );
      expect([status, body.code]).toEqual([503, 'auth-unavailable']);
      expect(headers.get('retry-after')).toBe('3');
      expect(scene.lines.join('')).toContain('problem');
    }
  });

  it('are not asked for again right after a failure, and work once the issuer is back', async () => {
    const from = await issuer();
    from.failing = 500;
    const times = { afterFailureMs: 500 };
    const scene = await guarded(from, { jwks: `${from.url}/jwks`, times });
    const token = await from.token();
    for (let count = 0; count < 10; count += 1) expect(await statusOf(scene, token)).toBe(503);
    expect(from.asked.length).toBeLessThanOrEqual(3);
    from.failing = null;
    await until(async () => (await statusOf(scene, token)) === 200, 'the issuer is asked again');
  });

  it('that are new are fetched when a token names one, but not for every unknown name', async () => {
    const from = await issuer();
    const scene = await guarded(from, { jwks: `${from.url}/jwks`, times: { unknownKeyMs: 300 } });
    expect(await statusOf(scene, await from.token())).toBe(200);
    await pause(350);
    await from.rotate();
    expect(await statusOf(scene, await from.token())).toBe(200);
    expect(from.asked).toHaveLength(2);
    const started = Date.now();
    for (let count = 0; count < 8; count += 1) {
      expect(await statusOf(scene, await from.token({}, { kid: `nobody-${count}` }))).toBe(401);
    }
    const most = 1 + Math.ceil((Date.now() - started) / 300);
    expect(from.asked.length - 2).toBeLessThanOrEqual(most);
  });

  it('known already are gone by while the issuer is away, for a bounded time; an unknown one is then 503', async () => {
    const from = await issuer();
    const times = { freshMs: 100, staleMsMax: 6_000, afterFailureMs: 50, unknownKeyMs: 100 };
    const scene = await guarded(from, { jwks: `${from.url}/jwks`, times });
    const token = await from.token();
    expect(await statusOf(scene, token)).toBe(200);
    from.failing = 500;
    await pause(200);
    expect(await statusOf(scene, token)).toBe(200);
    expect(await statusOf(scene, await from.token({}, { kid: 'new' }))).toBe(503);
    await until(async () => (await statusOf(scene, token)) === 503, 'the old keys are too old');
  });

  it('known already are gone by while the issuer hangs: nobody waits for it to the end', async () => {
    const from = await issuer();
    let hangs = false;
    const fetch = async (): Promise<Response> =>
      hangs ? new Promise<never>(() => undefined) : new Response(JSON.stringify(from.jwks));
    const times = { freshMs: 50, patienceMs: 100 };
    const scene = await guarded(from, { jwks: 'https://id.example/jwks', fetch, times });
    expect(await statusOf(scene, await from.token())).toBe(200);
    hangs = true;
    await pause(100);
    expect(await statusOf(scene, await from.token())).toBe(200);
    expect(await statusOf(scene, await from.token())).toBe(200);
  });

  it('that were taken out of a file end what they signed', async () => {
    const from = await issuer();
    const file = freshFile();
    writeFileSync(file, JSON.stringify(from.jwks));
    const scene = await guarded(from, { jwks: file });
    const token = await from.token();
    expect(await statusOf(scene, token)).toBe(200);
    writeFileSync(file, JSON.stringify({ keys: [] }));
    await pause(1_200);
    expect(await statusOf(scene, token)).toBe(401);
  });

  it('are refused when there are too many, when they are too large, or when they come by a redirect', async () => {
    const from = await issuer();
    const token = await from.token();
    const [first] = from.jwks.keys;
    from.jwks.keys = Array<unknown>(101).fill(first);
    expect(await statusOf(await guarded(from, { jwks: `${from.url}/jwks` }), token)).toBe(503);
    from.jwks.keys = [first, { kty: 'RSA', n: 'x'.repeat(300_000) }];
    expect(await statusOf(await guarded(from, { jwks: `${from.url}/jwks` }), token)).toBe(503);
    from.jwks.keys = [first];
    from.failing = 302;
    expect(await statusOf(await guarded(from, { jwks: `${from.url}/jwks` }), token)).toBe(503);
  });

  it('are not taken from a discovery document of somebody else, nor from http when the issuer is https', async () => {
    const from = await issuer();
    const answers: Readonly<Record<string, object>> = {
      other: { issuer: 'https://other.example', jwks_uri: `${from.url}/jwks` },
      downgraded: { issuer: 'https://id.example', jwks_uri: `${from.url}/jwks` },
      nothing: { issuer: 'https://id.example' },
    };
    for (const document of Object.values(answers)) {
      const fetch = async (url: string): Promise<Response> =>
        new Response(JSON.stringify(url.endsWith('configuration') ? document : from.jwks));
      const scene = await guarded(from, { issuer: 'https://id.example', fetch });
      expect(await statusOf(scene, await from.token({ iss: 'https://id.example' }))).toBe(503);
    }
  });

  it('over plain http from another machine are taken, with a warning', () => {
    const warnings = (jwks: string): number => {
      const lines: string[] = [];
      const log = pino({}, { write: (line: string) => lines.push(line) });
      createAuth({ jwt: { issuer: 'https://id.example', audience: AUDIENCE, jwks }, log });
      return lines.filter((line) => line.includes('plain http')).length;
    };
    expect(warnings('http://id.example/jwks')).toBe(1);
    for (const fine of [
      'https://id.example/jwks',
      'http://127.0.0.1:80/jwks',
      'http://[::1]/jwks',
      'jwks.json',
    ]) {
      expect([fine, warnings(fine)]).toEqual([fine, 0]);
    }
  });
});
