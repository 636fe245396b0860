import { createHmac } from 'node:crypto';
import { Socket } from 'node:net';
import { exportJWK, generateKeyPair, SignJWT, UnsecuredJWT } from 'jose';
import { afterEach, describe, expect, it } from 'vitest';
import { createAuth, type JwtOptions } from '../../src/auth/index.js';
import { clearScene, type Stage, stage } from '../scene.js';
import { AUDIENCE, bearer, type Issuer, issuer } from './issuer.js';

afterEach(clearScene);

const LOOK = '/v2/locks/own/a';
const now = (): number => Math.floor(Date.now() / 1_000);

/** Once this second is over. */
async function after(second: number): Promise<void> {
  while (now() <= second) await new Promise((resolve) => setTimeout(resolve, 100));
}

async function guarded(from: Issuer, more: Partial<JwtOptions> = {}): Promise<Stage> {
  const jwt = { issuer: from.url, audience: AUDIENCE, jwks: `${from.url}/jwks`, ...more };
  return await stage({ auth: createAuth({ jwt }) });
}

async function looked({ call }: Stage, token: string): Promise<readonly [number, unknown]> {
  const { status, body } = await call('GET', LOOK, undefined, bearer(token));
  return [status, body.code];
}

function encoded(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

const GOOD = [200, undefined];
const REFUSED = [401, 'unauthorized'];

describe('a token', () => {
  for (const alg of ['RS256', 'PS384', 'ES256', 'EdDSA']) {
    it(`of the issuer, for this service, signed with ${alg}, says who asks`, async () => {
      const from = await issuer(alg);
      const scene = await guarded(from);
      const token = await from.token();
      expect(await looked(scene, token)).toEqual(GOOD);
      const { body } = await scene.post('/v2/locks/own/a/acquire', { ttl: '30s' }, bearer(token));
      expect(body.owner).toBe('ada');
      expect(scene.lines.join('')).toContain('"principal":"jwt:ada"');
    });
  }

  it('is refused when expired, not yet valid, for others, of others, without expiry or subject', async () => {
    const from = await issuer();
    const scene = await guarded(from, { skewMs: 5_000 });
    const other = await issuer();
    const wrong: Readonly<Record<string, string>> = {
      expired: await from.token({ exp: now() - 60 }),
      'not yet valid': await from.token({ nbf: now() + 60 }),
      'for another audience': await from.token({ aud: 'mail' }),
      'for no audience': await from.token({ aud: undefined }),
      'of another issuer': await from.token({ iss: 'https://elsewhere.example' }),
      'of no issuer': await from.token({ iss: undefined }),
      'without expiry': await from.token({ exp: undefined }),
      'without subject': await from.token({ sub: undefined }),
      'with an empty subject': await from.token({ sub: '' }),
    };
    for (const [what, token] of Object.entries(wrong))
      expect([what, ...(await looked(scene, token))]).toEqual([what, ...REFUSED]);
    // The kid is the same, the key is not.
    const forged = await other.token({ iss: from.url });
    expect(await looked(await guarded(from), forged)).toEqual(REFUSED);
  });

  it('is refused when its subject would not do as an owner', async () => {
    const from = await issuer();
    const scene = await guarded(from);
    for (const sub of ['x'.repeat(300), 'a\nb', 'a\u0000', 7, ['ada'], {}]) {
      expect(await looked(scene, await from.token({ sub }))).toEqual(REFUSED);
    }
  });

  it('is taken while clocks are apart by no more than allowed, which is a minute by default and at most', async () => {
    const from = await issuer();
    const scene = await guarded(from);
    expect(await looked(scene, await from.token({ exp: now() - 40 }))).toEqual(GOOD);
    expect(await looked(scene, await from.token({ nbf: now() + 40 }))).toEqual(GOOD);
    expect(await looked(scene, await from.token({ exp: now() - 70 }))).toEqual(REFUSED);
    await expect(guarded(from, { skewMs: 60_001 })).rejects.toThrow(/skewMs/);
  });

  it('that expires while its request waits ends the waiting, and is shown no holder', async () => {
    const from = await issuer();
    const scene = await guarded(from, { skewMs: 0 });
    const bob = await from.token({ sub: 'bob' });
    await scene.post(`${LOOK}/acquire`, { ttl: '20m' }, bearer(bob));
    const ada = await from.token({ exp: now() + 4 });
    const { status, text } = await scene.post(`${LOOK}/acquire`, { ttl: '30s', wait: '10m' }, bearer(ada));
    expect(status).toBe(403);
    expect(text).not.toContain('bob');
  });

  it('that is unsigned, or says "alg": "none" in any spelling, is refused', async () => {
    const from = await issuer();
    const scene = await guarded(from);
    const claims = { iss: from.url, aud: AUDIENCE, sub: 'ada', exp: now() + 600, holdfast: ['admin:*'] };
    const good = await from.token();
    const unsigned = [
      new UnsecuredJWT(claims).encode(),
      ...['none', 'None', 'NONE', 'nOnE', ''].map(
        (alg) => `${encoded({ alg, kid: 'key-1' })}.${encoded(claims)}.AAAA`,
      ),
      `${good.split('.').slice(0, 2).join('.')}.`,
      good.split('.').slice(0, 2).join('.'),
    ];
    for (const token of unsigned) expect(await looked(scene, token)).toEqual(REFUSED);
  });

  it('signed with the public key as a shared secret is refused, with HS256 to HS512', async () => {
    const from = await issuer();
    const [jwk] = from.jwks.keys as Record<string, string>[];
    const claims = { iss: from.url, aud: AUDIENCE, sub: 'ada', exp: now() + 600, holdfast: ['admin:*'] };
    for (const bits of [256, 384, 512]) {
      const scene = await guarded(from);
      const head = `${encoded({ alg: `HS${bits}`, kid: 'key-1' })}.${encoded(claims)}`;
      for (const secret of [from.pem, from.pem.trim(), JSON.stringify(jwk), jwk?.n ?? '']) {
        const signature = createHmac(`sha${bits}`, secret).update(head).digest('base64url');
        expect(await looked(scene, `${head}.${signature}`)).toEqual(REFUSED);
      }
    }
    const jwt = { issuer: from.url, audience: AUDIENCE };
    expect(() => createAuth({ jwt: { ...jwt, algorithms: ['HS256'] } })).toThrow(/HS256 is not accepted/);
    expect(() => createAuth({ jwt: { ...jwt, algorithms: ['none'] } })).toThrow(/none is not accepted/);
  });

  it('is refused when a shared secret is in the set of keys, even if it fits', async () => {
    const from = await issuer();
    const secret = Buffer.alloc(32, 7);
    from.jwks.keys.push({ kty: 'oct', kid: 'shared', k: secret.toString('base64url') });
    const claims = { iss: from.url, aud: AUDIENCE, sub: 'ada', exp: now() + 600 };
    const token = await new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid: 'shared' }).sign(secret);
    expect(await looked(await guarded(from), token)).toEqual(REFUSED);
  });

  it('brings no key of its own: jwk, jku, x5u and x5c are not looked at', async () => {
    const from = await issuer();
    const evil = await issuer();
    const scene = await guarded(from);
    const { privateKey, publicKey } = await generateKeyPair('RS256');
    const own = { ...(await exportJWK(publicKey)), kid: 'own', alg: 'RS256' };
    evil.jwks.keys.push(own);
    const claims = { iss: from.url, aud: AUDIENCE, sub: 'ada', exp: now() + 600 };
    const headers: readonly object[] = [
      { jwk: own, kid: 'own' },
      { jwk: own },
      { jku: `${evil.url}/jwks`, kid: 'own' },
      { x5u: `${evil.url}/cert`, kid: 'own' },
      { x5c: ['AAAA'], kid: 'own' },
    ];
    for (const header of headers) {
      const token = await new SignJWT(claims)
        .setProtectedHeader({ alg: 'RS256', ...header })
        .sign(privateKey);
      expect(await looked(scene, token)).toEqual(REFUSED);
    }
    expect(evil.asked).toEqual([]);
    // A good token that has such a header is a good token.
    expect(await looked(scene, await from.token({}, { jku: `${evil.url}/jwks` }))).toEqual(GOOD);
    expect(evil.asked).toEqual([]);
  });

  it('with an unknown kid, or a critical header that is not understood, is refused', async () => {
    const from = await issuer();
    const scene = await guarded(from);
    expect(await looked(scene, await from.token({}, { kid: 'nobody' }))).toEqual(REFUSED);
    const [, payload = '', signature = ''] = (await from.token()).split('.');
    const critical = encoded({ alg: 'RS256', kid: 'key-1', crit: ['strange'], strange: 1 });
    expect(await looked(scene, `${critical}.${payload}.${signature}`)).toEqual(REFUSED);
  });

  it('that was changed anywhere is refused', async () => {
    const from = await issuer('ES256');
    const scene = await guarded(from);
    const [head = '', payload = '', signature = ''] = (await from.token()).split('.');
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as object;
    const raised = encoded({ ...claims, holdfast: ['admin:*'] });
    expect(await looked(scene, `${head}.${raised}.${signature}`)).toEqual(REFUSED);
    expect(await looked(scene, `${head}.${payload}.${signature.slice(4)}AAAA`)).toEqual(REFUSED);
    expect(await looked(scene, `${head}.${payload}.${'A'.repeat(86)}`)).toEqual(REFUSED);
  });

  it('that is larger than 8 KB, or no token at all, is refused without the issuer being asked', async () => {
    const from = await issuer();
    const scene = await guarded(from);
    const large = await from.token({ padding: 'x'.repeat(7_000) });
    const strange = [large, 'x', 'a.b', 'a.b.c.d', '..', 'a.b.c.d.e', '%00', `${'a'.repeat(5_000)}`];
    for (const token of strange) expect(await looked(scene, token)).toEqual(REFUSED);
    expect(from.asked).toEqual([]);
    const huge = await scene.call('GET', LOOK, undefined, bearer('x'.repeat(20_000)));
    expect(huge.status).toBe(413);
  });

  it('that was good before is not taken any longer than it says, nor with anything changed in it', async () => {
    const from = await issuer();
    const scene = await guarded(from, { skewMs: 0 });
    const exp = now() + 8;
    const token = await from.token({ exp });
    const [head = '', payload = '', signature = ''] = token.split('.');
    for (let count = 0; count < 3; count += 1) expect(await looked(scene, token)).toEqual(GOOD);
    expect(await looked(scene, `${head}.${payload}.${signature.slice(0, -8)}AAAAAAAA`)).toEqual(REFUSED);
    await after(exp);
    expect(await looked(scene, token)).toEqual(REFUSED);
  });

  it('ends while a request is open: what a bearer may do is asked again', async () => {
    const from = await issuer();
    const auth = createAuth({
      jwt: { issuer: from.url, audience: AUDIENCE, jwks: `${from.url}/jwks`, skewMs: 0 },
    });
    const exp = now() + 8;
    const token = await from.token({ exp });
    const request = { headers: bearer(token), ip: '127.0.0.1', raw: { socket: new Socket() } };
    const principal = await auth.authenticate(request as never);
    expect(principal.may('lock', 'own')).toBe(true);
    await after(exp);
    expect(principal.may('lock', 'own')).toBe(false);
  });
});

describe('the rights of a bearer', () => {
  it('come from a claim, as a list or as one text; what is no right gives none', async () => {
    const from = await issuer();
    const { post } = await guarded(from, { claim: 'locks' });
    const statusOf = async (locks: unknown): Promise<number> =>
      (await post('/v2/locks/own/a/acquire', { ttl: '30s' }, bearer(await from.token({ locks })))).status;
    const may = async (locks: unknown): Promise<boolean> => (await statusOf(locks)) !== 403;
    expect(await may(['lock:own'])).toBe(true);
    expect(await may('read:* lock:own')).toBe(true);
    for (const none of [
      undefined,
      null,
      7,
      {},
      [],
      ['read:own'],
      ['lock:other'],
      [['lock:own']],
      'lock: own',
      true,
    ]) {
      expect(await may(none)).toBe(false);
    }
  });

  it('are none without a claim, unless the configuration gives some; a claim that is there decides alone', async () => {
    const from = await issuer();
    const acquire = async ({ post }: Stage, holdfast: unknown): Promise<number> =>
      (await post('/v2/locks/own/a/acquire', { ttl: '30s' }, bearer(await from.token({ holdfast })))).status;
    expect(await acquire(await guarded(from), undefined)).toBe(403);
    const generous = await guarded(from, { rights: ['lock:*'] });
    expect(await acquire(generous, undefined)).toBe(200);
    for (const holdfast of [['lock:other'], ['read:own'], [], null, '', 7]) {
      expect([holdfast, await acquire(generous, holdfast)]).toEqual([holdfast, 403]);
    }
  });
});
