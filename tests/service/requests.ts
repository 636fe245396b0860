/**
 * Requests of every route by everybody, half of them right and the rest wrong in some way, from a seed. What they say
 * tells whose it is: secrets have the name of their sender, owners and metadata that of the namespace, or of a stranger.
 */
import { type Draft, written } from './bending.js';
import { FILES, type Json, MALFORMED, NAMES, SECRET, WEIRD } from './oddities.js';
import type { Principal } from './principals.js';
import { Random } from './random.js';

/** Locks of these numbers are held all the time in every namespace, and tried by strangers alone. */
export const KEPT = 3;
export const KEPT_HOLD = `${SECRET}-boss-kept`;
export const NAMESPACES = ['shop-0', 'shop-1', 'shop-2', 'shop-3'] as const;

export interface Fuzzed {
  readonly who: Principal;
  readonly bytes: string;
  /** What it asks for, whether it is right or not. */
  readonly route: string;
}

export class Requests {
  readonly #random: Random;
  readonly #everybody: readonly Principal[];
  #who: Principal;
  #space = '';

  constructor(seed: number, everybody: readonly Principal[]) {
    this.#random = new Random(seed);
    this.#everybody = everybody;
    this.#who = this.#pick(everybody);
  }

  next(): Fuzzed {
    this.#who = this.#pick(this.#everybody);
    const own = NAMESPACES.filter((space) => this.#who.may('read', space));
    this.#space = this.#pick(own.length > 0 && this.#chance(0.7) ? own : NAMESPACES);
    const [route, draft] = this.#pick(this.#drafts)();
    return { who: this.#who, route, bytes: written(this.#random, draft, this.#who.credential) };
  }

  /** What is no HTTP at all, or only nearly. */
  nonsense(): Fuzzed {
    const noise = (): string =>
      Array.from({ length: 200 }, () => String.fromCharCode(this.#whole(256))).join('');
    const bytes = this.#chance(0.9) ? this.#pick(MALFORMED) : noise();
    return { who: this.#who, route: 'nonsense', bytes };
  }

  readonly #drafts: readonly (() => [string, Draft])[] = [
    () => this.#onLock('acquire', this.#acquire(), this.#chance(0.1) ? this.#idempotency() : []),
    () => this.#onLock('acquire', this.#acquire()),
    () => this.#onLock('renew', { hold: this.#hold(), ttl: this.#whole(500) + 500 }),
    () => this.#onLock('release', { hold: this.#hold(), ...(this.#chance(0.1) && { minHold: 20 }) }),
    () => this.#onLock('evict', this.#chance(0.5) ? {} : { upToToken: this.#whole(1_000) }),
    () => this.#onLock('evict', { token: this.#whole(1_000), reason: 'the host is retired' }),
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
      `/dashboard/session${this.#chance(0.5) ? `?namespace=${this.#space}` : ''}`,
      // Dear, and with little to get wrong.
      ...(this.#chance(0.1) ? ['/metrics', '/v2/openapi.json', '/v2/events', this.#inbox()] : []),
    ]);
    return ['others', { method: this.#pick(['GET', 'GET', 'GET', 'POST', 'DELETE', 'OPTIONS']), path }];
  }

  #onLock(action: string, body: Json, headers: Draft['headers'] = []): [string, Draft] {
    return [action, { method: 'POST', path: `${this.#lock()}/${action}`, body, headers }];
  }

  #central(action: string): [string, Draft] {
    const lease = action === 'release' ? {} : { leaseDuration: 1 + this.#whole(3) };
    const body = { instanceId: this.#tries() ? KEPT_HOLD : this.#secret(5), ...lease };
    return [`v1 ${action}`, { method: 'POST', path: `${this.#centralLock()}/${action}`, body }];
  }

  #acquire(): { [name: string]: Json } {
    return {
      // Shorter ones are over before a busy machine has answered: that is a 503, and rightly so.
      ttl: this.#pick<Json>([500, 800, '600ms', 2_000]),
      ...(this.#chance(0.3) && { wait: this.#whole(20) }),
      ...(this.#chance(0.3) && { owner: `${this.#label()}${this.#pick(['', ' é'])}` }),
      ...(this.#chance(0.2) && { metadata: { job: this.#label(), more: [this.#weird()] } }),
      ...(this.#chance(0.2) && { permits: 1, capacity: this.#pick([2, 5]) }),
      ...(this.#chance(0.1) && { mode: this.#pick(['exclusive', 'read', 'write']) }),
      ...(this.#chance(0.5) && { hold: this.#hold() }),
      ...(this.#chance(0.1) && { queue: this.#chance(0.5) }),
    };
  }

  #commands(): Json[] {
    return Array.from({ length: this.#whole(4) }, (): Json => {
      this.#space = this.#chance(0.7) ? this.#space : this.#pick(NAMESPACES);
      const key = `${this.#space}/${this.#name()}`;
      const [process = '', number] = this.#hold().split('.');
      const hold = { process, number: Number(number) };
      const ttlMs = 10 + this.#whole(200);
      const claim = {
        owner: this.#label(),
        permits: 1,
        capacity: 1,
        ttlMs,
        queue: this.#chance(0.3),
        inbox: this.#chance(0.5) ? this.#secret(3) : null,
        metadata: this.#chance(0.5) ? this.#label() : null,
      };
      return this.#pick<Json>([
        { kind: 'claim', key, hold, ...claim },
        { kind: 'renew', key, hold, ttlMs, block: false },
        { kind: 'release', key, hold, minHoldMs: 0 },
        { kind: 'evict', key, upToToken: this.#whole(100) },
        { kind: 'evict', key, fromToken: 3, upToToken: this.#whole(100), reason: 'the host is retired' },
      ]);
    });
  }

  #idempotency(): [string, string][] {
    return [['idempotency-key', this.#secret(50)]];
  }

  #query(): string {
    const parts: string[] = [];
    const add = (name: string, value: string): void =>
      void parts.push(`${name}=${encodeURIComponent(value.toWellFormed())}`);
    if (this.#chance(0.5)) add('namespace', this.#space);
    if (this.#chance(0.3)) add('prefix', this.#pick(['', 'lock', 'é', 'lock-1']));
    if (this.#chance(0.5)) add('limit', String(1 + this.#whole(20)));
    if (this.#chance(0.2)) add('after', `${this.#space}/${this.#name()}`);
    if (this.#chance(0.1)) add('metadata', 'text');
    if (this.#chance(0.1)) add(this.#pick(NAMES), String(this.#weird()));
    return parts.length === 0 ? '' : `?${parts.join('&')}`;
  }

  #lock(): string {
    return `/v2/locks/${this.#space}/${encodeURIComponent(this.#name())}`;
  }

  #centralLock(): string {
    const name = this.#tries() ? `kept-${this.#whole(KEPT)}` : `central-${this.#whole(10)}`;
    return `/v1/${this.#space}/lock/${name}`;
  }

  #inbox(): string {
    return `/v2/inboxes/${this.#secret(3)}/events`;
  }

  #name(): string {
    if (this.#tries()) return `kept-${this.#whole(KEPT)}`;
    return this.#pick([`lock-${this.#whole(50)}`, `lock-${this.#whole(50)}`, 'é/ß', 'constructor']);
  }

  /** A stranger who has found out the hold is one still. */
  #hold(): string {
    return `${this.#tries() ? KEPT_HOLD : this.#secret(30)}.${1 + this.#whole(3)}`;
  }

  #secret(below: number): string {
    return `${SECRET}-${this.#who.name}-${this.#whole(below)}`;
  }

  #label(): string {
    return this.#isStranger() ? `stranger-${this.#who.name}` : `inside-${this.#space}`;
  }

  #tries(): boolean {
    return this.#isStranger() && this.#chance(0.5);
  }

  #isStranger(): boolean {
    return !this.#who.may('lock', this.#space);
  }

  #weird = (): Json => this.#pick(WEIRD);
  #chance = (share: number): boolean => this.#random.chance(share);
  #whole = (below: number): number => this.#random.whole(below);
  #pick<T>(items: readonly T[]): T {
    return this.#random.pick(items);
  }
}
