/**
 * A lock as those who watch it are told of it. Serialised when the first of them is told, and once for all of them: a lock
 * may have a thousand holders, and hundreds may watch it.
 */
import { type LockView, withMetadata } from './views.js';

export type ChangeKind = 'appeared' | 'changed' | 'renewed' | 'gone';

export class ToldLock {
  readonly #view: LockView;
  #data: Buffer | null = null;

  /** Metadata are texts. */
  constructor(view: LockView) {
    this.#view = view;
  }

  get key(): string {
    return this.#view.key;
  }

  /** JSON. */
  get data(): Buffer {
    this.#data ??= Buffer.from(JSON.stringify(withMetadata(this.#view)));
    return this.#data;
  }
}
