/** Requests as bytes, wrong in one way or another every second time. */
import { HEADERS, type Json, NAMES, PIECES, WEIRD } from './oddities.js';
import type { Random } from './random.js';

export interface Draft {
  readonly method: string;
  readonly path: string;
  readonly body?: Json;
  readonly headers?: readonly (readonly [string, string])[];
}

/** `credential`: null where none is sent. */
export function written(random: Random, draft: Draft, credential: string | null): string {
  const wrong = random.chance(0.5) ? random.whole(6) : -1;
  const path = wrong === 0 ? bentPath(random, draft.path) : draft.path;
  const body = draft.body === undefined ? null : bodyText(random, draft.body, wrong);
  const bearer = credential === null ? null : `Bearer ${credential}`;
  const authorization = wrong === 4 && random.chance(0.2) ? badCredential(random, credential ?? '') : bearer;
  const headers: (readonly [string, string])[] = [['host', '127.0.0.1']];
  if (authorization !== null) headers.push(['authorization', authorization]);
  headers.push(...(draft.headers ?? []));
  if (wrong === 5) headers.push(random.pick(HEADERS));
  if (body !== null) {
    headers.push(['content-type', wrong === 3 ? oddType(random) : 'application/json']);
    headers.push(['content-length', String(Buffer.byteLength(body))]);
  }
  const isOdd = wrong === 4 && random.chance(0.3);
  const method = isOdd ? random.pick(['GET', 'PUT', 'PATCH', 'DELETE']) : draft.method;
  const head = [`${method} ${path} HTTP/1.1`, ...headers.map(([name, value]) => `${name}: ${value}`)];
  return `${head.join('\r\n')}\r\n\r\n${body ?? ''}`;
}

function bodyText(random: Random, body: Json, wrong: number): string {
  const text = JSON.stringify(wrong === 1 ? bent(random, body) : body);
  if (wrong !== 2) return text;
  const deep = 1 + random.whole(8_000);
  return random.pick([
    '',
    'null',
    text.slice(0, random.whole(text.length)),
    `${text}${text}`,
    text.replace('{', '{"__proto__":{"admin":true},'),
    text.replace('{', '{"constructor":{"prototype":{"x":1}},'),
    text.replaceAll(/\d+/g, '1e400'),
    `${'['.repeat(deep)}${']'.repeat(deep)}`,
    text.replace('{', `{"metadata":${'{"a":'.repeat(deep)}1${'}'.repeat(deep)},`),
    `\ufeff${text}`,
    `"${'x'.repeat(random.whole(100_000))}"`,
  ]);
}

/** One member, somewhere, is another one, or gone, or one more. */
function bent(random: Random, value: Json): Json {
  if (typeof value !== 'object' || value === null || random.chance(0.1)) return random.pick(WEIRD);
  if (Array.isArray(value)) {
    const at = random.whole(value.length);
    return value.length === 0
      ? [random.pick(WEIRD)]
      : value.map((item, index) => (index === at ? bent(random, item) : item));
  }
  const members = Object.entries(value);
  if (random.chance(0.15)) {
    return Object.fromEntries([...members, [random.pick(NAMES), random.pick(WEIRD)]]);
  }
  const at = random.whole(members.length);
  if (random.chance(0.15)) return Object.fromEntries(members.filter((_, index) => index !== at));
  return Object.fromEntries(
    members.map(([name, item], index) => [name, index === at ? bent(random, item) : item]),
  );
}

function bentPath(random: Random, path: string): string {
  const at = 1 + random.whole(path.length);
  const piece = random.chance(0.1) ? 'x'.repeat(random.whole(4_000)) : random.pick(PIECES);
  return `${path.slice(0, at)}${piece}${path.slice(at + random.whole(3))}`;
}

function oddType(random: Random): string {
  return random.pick([
    'text/plain',
    'application/json; charset=latin1',
    'application/xml',
    '',
    '__proto__',
    'a/b;'.repeat(50),
  ]);
}

function badCredential(random: Random, credential: string): string {
  const token = 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.';
  return random.pick([
    '',
    'Bearer',
    'Basic YTpi',
    `Bearer ${credential}x`,
    'Bearer hfk_',
    `Bearer ${token}`,
    'Bearer \u00ff',
  ]);
}
