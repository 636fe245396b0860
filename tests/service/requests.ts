/** Requests of every route, half of them right and the rest wrong in some way, from a seed. */
import { FILES, HEADERS, type Json, MALFORMED, NAMES, PIECES, SECRET, WEIRD } from './oddities.js';

interface Draft {
  readonly method: string;
  readonly path: string;
  readonly body?: Json;
  readonly headers?: readonly (readonly [string, string])[];
}

export interface Fuzzed {
  readonly bytes: string;
  /** What it asks for, whether it is right or not. */
  readonly route: string;
}

export class Requests {
  readonly #random: () => number;
  readonly #key: string;

  constructor(seed: number, key: string) {
    this.#random = randomOf(seed);
    this.#key = key;
  }

  next(): Fuzzed {
    const [route, draft] = this.#pick(this.#drafts)();
    return { route, bytes: this.#written(draft) };
  }

  /** What is no HTTP at all, or only nearly. */
  nonsense(): string {
    if (this.#chance(0.9)) return this.#pick(MALFORMED);
    return Array.from({ length: 200 }, () => String.fromCharCode(this.#whole(256))).join('');
  }

  readonly #drafts: readonly (() => [string, Draft])[] = [
    () => this.#onLock('acquire', this.#acquire(), this.#chance(0.1) ? this.#idempotency() : []),
    () => this.#onLock('acquire', this.#acquire()),
    () => this.#onLock('renew', { hold: this.#hold(), ttl: this.#whole(500) + 500 }),
    () => this.#onLock('release', { hold: this.#hold(), ...(this.#chance(0.1) && { minHold: 20 }) }),
    () => this.#onLock('evict', this.#chance(0.5) ? {} : { upToToken: this.#whole(1_000) }),
    () => ['inspect', { method: 'GET', path: this.#lock() }],
    () => ['list', { method: 'GET', path: `/v2/locks${this.#query()}` }],
    () => ['batch', { method: 'POST', path: '/v2/batch', body: { commands: this.#commands() } }],
    () => this.#central('acquire'),
    () => this.#central('renew'),
    () => this.#central('release'),
    () => ['v1 look', { method: this.#chance(0.2) ? 'HEAD' : 'GET', path: this.#centralLock() }],
    () => this.#small(),
  ];

  #small(): [string, Draft] {
    const path = this.#pick([
      ...['/', '/healthz', '/readyz', '/v2/probe', '/v2/docs', '/nothing', '/v2', '/v1', '//'],
      `/dashboard/${this.#pick(FILES)}`,
      `/dashboard/session${this.#chance(0.5) ? `?namespace=${this.#namespace()}` : ''}`,
      // Dear, and with little to get wrong.
      ...(this.#chance(0.05) ? ['/metrics', '/v2/openapi.json', '/v2/events', '/v2/inboxes/one/events'] : []),
    ]);
    return ['others', { method: this.#pick(['GET', 'GET', 'GET', 'POST', 'DELETE', 'OPTIONS']), path }];
  }

  #onLock(action: string, body: Json, headers: Draft['headers'] = []): [string, Draft] {
    return [action, { method: 'POST', path: `${this.#lock()}/${action}`, body, headers }];
  }

  #central(action: string): [string, Draft] {
    const lease = action === 'release' ? {} : { leaseDuration: 1 + this.#whole(3) };
    const body = { instanceId: `${SECRET}-${this.#whole(5)}`, ...lease };
    return [`v1 ${action}`, { method: 'POST', path: `${this.#centralLock()}/${action}`, body }];
  }

  #acquire(): { [name: string]: Json } {
    return {
      // Shorter ones are over before a busy machine has answered: that is a 503, and rightly so.
      ttl: this.#pick<Json>([500, 800, '600ms', 2_000]),
      ...(this.#chance(0.3) && { wait: this.#whole(20) }),
      ...(this.#chance(0.3) && { owner: this.#pick(['ann', 'bob', 'é']) }),
      ...(this.#chance(0.2) && { metadata: { job: this.#whole(9), more: [this.#weird()] } }),
      ...(this.#chance(0.2) && { permits: 1, capacity: this.#pick([2, 5]) }),
      ...(this.#chance(0.1) && { mode: this.#pick(['exclusive', 'read', 'write']) }),
      ...(this.#chance(0.5) && { hold: this.#hold() }),
      ...(this.#chance(0.1) && { queue: this.#chance(0.5) }),
    };
  }

  #commands(): Json[] {
    return Array.from({ length: this.#whole(4) }, (): Json => {
      const key = `${this.#namespace()}/${this.#name()}`;
      const hold = { process: `${SECRET}${this.#whole(30)}`, number: 1 + this.#whole(3) };
      const ttlMs = 10 + this.#whole(200);
      const claim = {
        owner: 'ann',
        permits: 1,
        capacity: 1,
        ttlMs,
        queue: this.#chance(0.3),
        inbox: null,
        metadata: null,
      };
      return this.#pick<Json>([
        { kind: 'claim', key, hold, ...claim },
        { kind: 'renew', key, hold, ttlMs, block: false },
        { kind: 'release', key, hold, minHoldMs: 0 },
        { kind: 'evict', key, upToToken: this.#whole(100) },
      ]);
    });
  }

  #idempotency(): [string, string][] {
    return [['idempotency-key', `${SECRET}-idempotency-${this.#whole(50)}`]];
  }

  #query(): string {
    const parts: string[] = [];
    const add = (name: string, value: string): void =>
      void parts.push(`${name}=${encodeURIComponent(value.toWellFormed())}`);
    if (this.#chance(0.5)) add('namespace', this.#namespace());
    if (this.#chance(0.3)) add('prefix', this.#pick(['', 'lock', 'é', 'lock-1']));
    if (this.#chance(0.5)) add('limit', String(1 + this.#whole(20)));
    if (this.#chance(0.2)) add('after', `${this.#namespace()}/${this.#name()}`);
    if (this.#chance(0.1)) add('metadata', 'text');
    if (this.#chance(0.1)) add(this.#pick(NAMES), String(this.#weird()));
    return parts.length === 0 ? '' : `?${parts.join('&')}`;
  }

  #lock(): string {
    return `/v2/locks/${this.#namespace()}/${encodeURIComponent(this.#name())}`;
  }

  #centralLock(): string {
    return `/v1/${this.#namespace()}/lock/central-${this.#whole(10)}`;
  }

  #namespace = (): string => `shop-${this.#whole(4)}`;
  #name = (): string =>
    this.#pick([`lock-${this.#whole(50)}`, `lock-${this.#whole(50)}`, 'é/ß', 'constructor']);
  #hold = (): string => `${SECRET}${this.#whole(30)}.${1 + this.#whole(3)}`;

  /** As bytes, wrong in one way or another every second time. */
  #written(draft: Draft): string {
    const wrong = this.#chance(0.5) ? this.#whole(6) : -1;
    const path = wrong === 0 ? this.#bentPath(draft.path) : draft.path;
    const body = draft.body === undefined ? null : this.#bodyText(draft.body, wrong);
    const headers: (readonly [string, string])[] = [
      ['host', '127.0.0.1'],
      ['authorization', wrong === 4 && this.#chance(0.2) ? this.#badCredential() : `Bearer ${this.#key}`],
      ...(draft.headers ?? []),
      ...(wrong === 5 ? [this.#pick(HEADERS)] : []),
    ];
    if (body !== null) {
      headers.push(['content-type', wrong === 3 ? this.#oddType() : 'application/json']);
      headers.push(['content-length', String(Buffer.byteLength(body))]);
    }
    const method =
      wrong === 4 && this.#chance(0.3) ? this.#pick(['GET', 'PUT', 'PATCH', 'DELETE']) : draft.method;
    const head = [`${method} ${path} HTTP/1.1`, ...headers.map(([name, value]) => `${name}: ${value}`)];
    return `${head.join('\r\n')}\r\n\r\n${body ?? ''}`;
  }

  #bodyText(body: Json, wrong: number): string {
    const text = JSON.stringify(wrong === 1 ? this.#bent(body) : body);
    if (wrong !== 2) return text;
    const deep = 1 + this.#whole(8_000);
    return this.#pick([
      '',
      'null',
      text.slice(0, this.#whole(text.length)),
      `${text}${text}`,
      text.replace('{', '{"__proto__":{"admin":true},'),
      text.replace('{', '{"constructor":{"prototype":{"x":1}},'),
      text.replaceAll(/\d+/g, '1e400'),
      `${'['.repeat(deep)}${']'.repeat(deep)}`,
      text.replace('{', `{"metadata":${'{"a":'.repeat(deep)}1${'}'.repeat(deep)},`),
      `\ufeff${text}`,
      `"${'x'.repeat(this.#whole(100_000))}"`,
    ]);
  }

  /** One member, somewhere, is another one, or gone, or one more. */
  #bent(value: Json): Json {
    if (typeof value !== 'object' || value === null || this.#chance(0.1)) return this.#weird();
    if (Array.isArray(value)) {
      const at = this.#whole(value.length);
      return value.length === 0
        ? [this.#weird()]
        : value.map((item, index) => (index === at ? this.#bent(item) : item));
    }
    const members = Object.entries(value);
    if (this.#chance(0.15)) return Object.fromEntries([...members, [this.#pick(NAMES), this.#weird()]]);
    const at = this.#whole(members.length);
    if (this.#chance(0.15)) return Object.fromEntries(members.filter((_, index) => index !== at));
    return Object.fromEntries(
      members.map(([name, item], index) => [name, index === at ? this.#bent(item) : item]),
    );
  }

  #bentPath(path: string): string {
    const at = 1 + this.#whole(path.length);
    const piece = this.#chance(0.1) ? 'x'.repeat(this.#whole(4_000)) : this.#pick(PIECES);
    return `${path.slice(0, at)}${piece}${path.slice(at + this.#whole(3))}`;
  }

  #oddType(): string {
    return this.#pick([
      'text/plain',
      'application/json; charset=latin1',
      'application/xml',
      '',
      '__proto__',
      'a/b;'.repeat(50),
    ]);
  }

  #badCredential(): string {
    const token = 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.';
    return this.#pick([
      '',
      'Bearer',
      'Basic YTpi',
      `Bearer ${this.#key}x`,
      'Bearer hfk_',
      `Bearer ${token}`,
      'Bearer \u00ff',
    ]);
  }

  #weird = (): Json => this.#pick(WEIRD);
  #chance = (share: number): boolean => this.#random() < share;
  #whole = (below: number): number => Math.floor(this.#random() * below);
  #pick<T>(items: readonly T[]): T {
    return items[this.#whole(items.length)] as T;
  }
}

function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
