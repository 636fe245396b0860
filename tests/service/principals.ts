/** Who asks: from the one who may do everything to those who may do nothing. */
import { generateKeyPairSync, sign } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Place } from '../cli/holdfast.js';

const RANK = { read: 1, lock: 2, admin: 3 } as const;
const RIGHTS = {
  boss: 'admin:*',
  ann: 'lock:shop-0',
  ben: 'read:shop-1',
  /** By a token, the others by keys. */
  cat: 'lock:shop-2',
  /** Whose key was revoked. */
  gone: 'admin:*',
  nobody: '',
} as const;
/** How many of twenty requests are whose. */
const SHARES: Readonly<Record<Name, number>> = { boss: 8, ann: 4, ben: 2, cat: 4, gone: 1, nobody: 1 };

export type Name = keyof typeof RIGHTS;

export interface Principal {
  readonly name: Name;
  readonly credential: string | null;
  may(role: keyof typeof RANK, namespace: string): boolean;
}

export interface Principals {
  /** Each as often as it should ask. */
  readonly all: readonly Principal[];
  readonly boss: Principal;
  /** For `holdfast serve`. */
  readonly args: readonly string[];
}

export async function principalsAt(place: Place): Promise<Principals> {
  const keys = join(place.folder, 'keys.json');
  const keyOf = async (name: Name): Promise<string> => {
    const made = await place.run(['api-key', 'create', name, '--rights', RIGHTS[name], '--api-keys', keys]);
    return made.stdout.trim();
  };
  const gone = principalOf('gone', await keyOf('gone'));
  await place.run(['api-key', 'revoke', 'gone', '--api-keys', keys]);
  const boss = principalOf('boss', await keyOf('boss'));
  const ann = principalOf('ann', await keyOf('ann'));
  const ben = principalOf('ben', await keyOf('ben'));
  const { token, jwks } = signed(RIGHTS.cat);
  const cat = principalOf('cat', token);
  const file = join(place.folder, 'jwks.json');
  writeFileSync(file, jwks);
  const everybody = [boss, ann, ben, cat, gone, principalOf('nobody', null)];
  return {
    all: everybody.flatMap((principal) => Array<Principal>(SHARES[principal.name]).fill(principal)),
    boss,
    args: ['--api-keys', keys, '--jwt-issuer', 'issuer', '--jwt-audience', 'locks', '--jwt-jwks', file],
  };
}

function principalOf(name: Name, credential: string | null): Principal {
  const [role, pattern] = name === 'gone' ? [] : RIGHTS[name].split(':');
  const rank = Object.hasOwn(RANK, role ?? '') ? RANK[role as keyof typeof RANK] : 0;
  return {
    name,
    credential,
    may: (needed, namespace) => rank >= RANK[needed] && (pattern === '*' || pattern === namespace),
  };
}

function signed(right: string): { readonly token: string; readonly jwks: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const exp = Math.floor(Date.now() / 1_000) + 3_600;
  const claims = { iss: 'issuer', aud: 'locks', sub: 'cat', exp, holdfast: [right] };
  const text = `${part({ alg: 'EdDSA', kid: 'one' })}.${part(claims)}`;
  const key = { ...publicKey.export({ format: 'jwk' }), kid: 'one', alg: 'EdDSA', use: 'sig' };
  return {
    token: `${text}.${sign(null, Buffer.from(text), privateKey).toString('base64url')}`,
    jwks: JSON.stringify({ keys: [key] }),
  };
}
