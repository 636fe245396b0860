/** An issuer of tokens on loopback, which can be stopped, and keys on file. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { exportJWK, exportSPKI, generateKeyPair, type JWK, SignJWT } from 'jose';
import { createApiKey } from '../../src/auth/api-keys.js';
import { atTheEnd, freshFile } from '../scene.js';

export const AUDIENCE = 'locks';

export interface Issuer {
  readonly url: string;
  /** What was asked for, in order. */
  readonly asked: string[];
  /** The public key, as PEM. */
  readonly pem: string;
  readonly jwks: { keys: unknown[] };
  /** Answers with this status instead. */
  failing: number | null;
  /** Answers after so long. */
  slowMs: number;
  /** A good token, unless told otherwise. */
  token(
    claims?: Readonly<Record<string, unknown>>,
    header?: Readonly<Record<string, unknown>>,
  ): Promise<string>;
  /** From now on tokens are signed with a new key; the old one stays in the set. */
  rotate(): Promise<void>;
}

/** Keys for RS256 take a hundred times as long to make. */
export async function issuer(alg = 'ES256'): Promise<Issuer> {
  const jwks: { keys: unknown[] } = { keys: [] };
  const asked: string[] = [];
  let { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  const pem = await exportSPKI(publicKey);
  let kid = '';
  const publish = async (): Promise<void> => {
    kid = `key-${jwks.keys.length + 1}`;
    const jwk: JWK = { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' };
    jwks.keys.push(jwk);
  };
  await publish();
  const server = createServer((request, response) => {
    asked.push(request.url ?? '');
    const body = request.url === '/jwks' ? jwks : { issuer: made.url, jwks_uri: `${made.url}/jwks` };
    response.writeHead(made.failing ?? 200, { 'content-type': 'application/json' });
    setTimeout(() => response.end(JSON.stringify(body)), made.slowMs);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atTheEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const made: Issuer = {
    url,
    asked,
    pem,
    jwks,
    failing: null,
    slowMs: 0,
    token: (claims = {}, header = {}) => {
      const now = Math.floor(Date.now() / 1_000);
      const good = { iss: url, aud: AUDIENCE, sub: 'ada', iat: now, exp: now + 600, holdfast: ['lock:own'] };
      const payload = { ...good, ...claims };
      return new SignJWT(payload).setProtectedHeader({ alg, kid, ...header }).sign(privateKey);
    },
    rotate: async () => {
      ({ privateKey, publicKey } = await generateKeyPair(alg, { extractable: true }));
      await publish();
    },
  };
  return made;
}

export function bearer(credential: string): { readonly authorization: string } {
  return { authorization: `Bearer ${credential}` };
}

export function freshKeyFile(): string {
  return join(dirname(freshFile()), 'keys.json');
}

/** A file of keys with one key for each name: `{ reader: ['read:own'] }`. */
export async function keyFile<N extends string>(
  rights: Readonly<Record<N, readonly string[]>>,
): Promise<{ readonly path: string; readonly keys: Readonly<Record<N, string>> }> {
  const path = freshKeyFile();
  const keys: Partial<Record<N, string>> = {};
  for (const name of Object.keys(rights) as N[]) {
    keys[name] = (await createApiKey({ path, by: 'test' }, { name, rights: rights[name] })).text;
  }
  return { path, keys: keys as Readonly<Record<N, string>> };
}
