/**
 * The API keys of a running service. It checks the file at most four times a second and reads it again when it changed: a
 * revoked API key ends without a restart. With a missing or invalid file, all API keys are refused, because an old copy
 * could contain a revoked one.
 */
import { statSync } from 'node:fs';
import type { Logger } from 'pino';
import { after, monotonicMs, wallMs } from '../clock.js';
import { digestIn, isKeyOf } from './api-key.js';
import { isAlive, readApiKeyFile, reasonOf, type StoredApiKey } from './api-key-file.js';
import { type Right, rightsOf } from './rights.js';

const LOOK_MS = 250;

export interface RingKey extends StoredApiKey {
  readonly parsed: readonly Right[];
  readonly digest: Buffer;
  /** The id of its principal, made once, because maps find a text faster that was looked up before. */
  readonly principalId: string;
}

export class ApiKeyRing {
  readonly #path: string;
  readonly #log: Logger | undefined;
  #keys: ReadonlyMap<string, RingKey> | null = null;
  /**
   * Texts that were right since the last look at the file, kept no longer: a hash for every request costs more than its
   * lock. A map finds a text by a seeded hash of all its letters, so its time reveals nothing about a wrong text.
   */
  readonly #right = new Map<string, RingKey>();
  #state = '';
  #lookedMs = Number.NEGATIVE_INFINITY;

  /** Throws when the file cannot be used, so that the start fails rather than the first request. */
  constructor(path: string, log?: Logger) {
    this.#path = path;
    this.#log = log;
    this.#keys = ringOf(readApiKeyFile(path));
  }

  /** False when the file cannot be used. */
  get isUsable(): boolean {
    this.#look();
    return this.#keys !== null;
  }

  /** Whether there is such an API key, valid or not. */
  knows(id: string): boolean {
    this.#look();
    return this.#keys?.has(id) ?? false;
  }

  /** The API key with this id and text, while it is valid. */
  find(id: string, text: string): RingKey | null {
    this.#look();
    const known = this.#right.get(text);
    const key = known?.id === id ? known : this.#compare(id, text);
    return key && isAlive(key, wallMs()) ? key : null;
  }

  /** Current rights of the API key; none when it is no longer valid. */
  rightsOf(id: string): readonly Right[] {
    this.#look();
    const key = this.#keys?.get(id);
    return key && isAlive(key, wallMs()) ? key.parsed : [];
  }

  #compare(id: string, text: string): RingKey | null {
    const key = this.#keys?.get(id);
    const isRight = isKeyOf(text, key?.digest ?? null);
    if (!key || !isRight) return null;
    // Cleared even without further requests.
    if (this.#right.size === 0) after(LOOK_MS, () => this.#right.clear());
    this.#right.set(text, key);
    return key;
  }

  #look(): void {
    const nowMs = monotonicMs();
    if (nowMs - this.#lookedMs < LOOK_MS) return;
    this.#lookedMs = nowMs;
    this.#right.clear();
    try {
      const { ino, size, mtimeNs, ctimeNs } = statSync(this.#path, { bigint: true });
      const state = [ino, size, mtimeNs, ctimeNs].join();
      if (state === this.#state) return;
      this.#state = state;
      this.#keys = ringOf(readApiKeyFile(this.#path));
      this.#log?.info({ keys: this.#keys.size }, 'the API keys were read');
    } catch (error) {
      // Logged once, not four times a second.
      if (this.#keys)
        this.#log?.error({ error: reasonOf(error) }, 'the API keys cannot be read: all of them are refused');
      this.#keys = null;
      this.#state = '';
    }
  }
}

function ringOf(keys: readonly StoredApiKey[]): ReadonlyMap<string, RingKey> {
  return new Map(keys.map((key) => [key.id, ringKeyOf(key)]));
}

function ringKeyOf(key: StoredApiKey): RingKey {
  const { name, rights, hash } = key;
  return { ...key, parsed: rightsOf(rights), digest: digestIn(hash), principalId: `key:${name}` };
}
