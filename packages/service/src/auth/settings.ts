/**
 * The settings of LockServiceCentral: `AUTHENTICATION_DISABLED`, `JWT_ISSUER`, `JWT_JWKS`, `JWT_AUDIENCE`. As there, the
 * issuer or the keys are enough, and they win over `AUTHENTICATION_DISABLED`; what that leaves open is in `notes`, for the
 * log. There every bearer of a good token may use every lock, so here they may too: `lock:*`, but not evict. `rights`
 * may say otherwise, and for tokens that have a claim of rights the claim decides.
 */
import { InvalidArgumentError } from 'holdfast';
import type { Authenticator } from '../http/principal.js';
import { type AuthOptions, createAuth } from './authenticator.js';
import type { JwtOptions } from './jwt.js';

export type AuthSettings = Readonly<
  Partial<Record<'AUTHENTICATION_DISABLED' | 'JWT_ISSUER' | 'JWT_JWKS' | 'JWT_AUDIENCE', string | undefined>>
>;

export interface AuthFromSettings {
  /** Absent when nothing is said about auth, or when it is switched off. */
  readonly auth?: Authenticator;
  /** Auth was switched off in so many words: then the service may listen beyond loopback. */
  readonly disabled: boolean;
  /** What the operator should know, a sentence each. */
  readonly notes: readonly string[];
}

const BEARERS = ['lock:*'];

/** `more`: API keys, limits, and the rights of bearers, from the service's own configuration. */
export function authFromSettings(
  settings: AuthSettings,
  more: AuthOptions & { readonly rights?: readonly string[] } = {},
): AuthFromSettings {
  const { JWT_ISSUER: issuer = '', JWT_AUDIENCE: audience = '', JWT_JWKS: jwks = '' } = settings;
  const { rights = BEARERS, ...options } = more;
  const isDisabled = isYes(settings.AUTHENTICATION_DISABLED);
  if (issuer !== '' || jwks !== '') {
    const jwt = {
      issuer: issuer === '' ? null : issuer,
      audience: audience === '' ? null : audience.split(',').map((text) => text.trim()),
      ...(jwks !== '' && { jwks }),
      rights,
      ...options.jwt,
    };
    return { auth: createAuth({ ...options, jwt }), disabled: false, notes: notesOn(jwt, isDisabled) };
  }
  const isConfigured = options.keys !== undefined || options.jwt !== undefined;
  if (isDisabled && isConfigured) {
    throw new InvalidArgumentError(
      'AUTHENTICATION_DISABLED is true, but auth is configured: remove one of both.',
    );
  }
  if (isConfigured) return { auth: createAuth(options), disabled: false, notes: [] };
  return { disabled: isDisabled, notes: [] };
}

function notesOn({ issuer, audience }: JwtOptions, isDisabled: boolean): readonly string[] {
  const notes: string[] = [];
  if (isDisabled) notes.push('AUTHENTICATION_DISABLED is not used: tokens are asked for.');
  if (audience === null)
    notes.push('JWT_AUDIENCE is missing: tokens made for other services count here, too.');
  if (issuer === null) notes.push('JWT_ISSUER is missing: tokens of anybody count whose key is in JWT_JWKS.');
  return notes;
}

function isYes(text: string | undefined): boolean {
  const word = (text ?? '').trim().toLowerCase();
  if (word === 'true') return true;
  if (word === 'false' || word === '') return false;
  throw new InvalidArgumentError(
    `AUTHENTICATION_DISABLED is ${JSON.stringify(text)}, but has to be true or false.`,
  );
}
