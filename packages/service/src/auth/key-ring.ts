/**
 * The keys that a running service goes by. It looks at the file's state at most four times a second, when it is asked,
 * and reads the file when it changed: a key that was revoked ends at once, without a restart. A file that is gone or
 * not understood lets nobody in: going by old keys would keep a revoked one alive.
 */
import { statSync } from 'node:fs';
import type { Logger } from 'pino';
import { monotonicMs, wallMs } from '../clock.js';
import { isKeyOf } from './api-key.js';
import { isAlive, readKeyFile, reasonOf, type StoredKey } from './key-file.js';
import { type Right, rightsOf } from './rights.js';

const LOOK_MS = 250;

export interface RingKey extends StoredKey {
  readonly parsed: readonly Right[];
}

export class KeyRing {
  readonly #path: string;
  readonly #log: Logger | undefined;
  #keys: ReadonlyMap<string, RingKey> | null = null;
  #state = '';
  #lookedMs = Number.NEGATIVE_INFINITY;

  /** Throws when the file cannot be used: better at the start than with the first request. */
  constructor(path: string, log?: Logger) {
    this.#path = path;
    this.#log = log;
    this.#keys = ringOf(readKeyFile(path));
  }

  /** False when the file cannot be used: then nobody knows who is who. */
  get isUsable(): boolean {
    this.#look();
    return this.#keys !== null;
  }

  /** Whether there is such a key, whatever has become of it. */
  knows(id: string): boolean {
    this.#look();
    return this.#keys?.has(id) ?? false;
  }

  /** The key with this id and text, while it is alive. */
  find(id: string, text: string): RingKey | null {
    this.#look();
    const key = this.#keys?.get(id);
    const isRight = isKeyOf(text, key?.hash ?? null);
    return key && isRight && isAlive(key, wallMs()) ? key : null;
  }

  /** The key's rights as they are now; none when it is no longer alive. */
  rightsOf(id: string): readonly Right[] {
    this.#look();
    const key = this.#keys?.get(id);
    return key && isAlive(key, wallMs()) ? key.parsed : [];
  }

  #look(): void {
    const nowMs = monotonicMs();
    if (nowMs - this.#lookedMs < LOOK_MS) return;
    this.#lookedMs = nowMs;
    try {
      const { ino, size, mtimeNs, ctimeNs } = statSync(this.#path, { bigint: true });
      const state = [ino, size, mtimeNs, ctimeNs].join();
      if (state === this.#state) return;
      this.#state = state;
      this.#keys = ringOf(readKeyFile(this.#path));
      this.#log?.info({ keys: this.#keys.size }, 'the keys were read');
    } catch (error) {
      // Once, not four times a second.
      if (this.#keys)
        this.#log?.error({ error: reasonOf(error) }, 'the keys cannot be read: no key is let in');
      this.#keys = null;
      this.#state = '';
    }
  }
}

function ringOf(keys: readonly StoredKey[]): ReadonlyMap<string, RingKey> {
  return new Map(keys.map((key) => [key.id, { ...key, parsed: rightsOf(key.rights) }]));
}
