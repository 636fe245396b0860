/**
 * What one stream is still to be told. Whoever reads slower than things change is told the last of each lock, and what
 * waits for them is bounded by the number of locks, however many changes there are.
 */
import type { Stream } from './stream.js';
import { type LockView, withMetadata } from './views.js';
import type { ChangeKind } from './watch.js';

export class Telling {
  readonly #stream: Pick<Stream, 'send' | 'isBehind' | 'onDrain'>;
  readonly #may: (key: string) => boolean;
  readonly #changes = new Map<string, { readonly kind: ChangeKind; readonly lock: LockView }>();
  #state: 'new' | 'complete' | 'ready' | 'trouble' = 'new';

  /** `may` is asked right before each is sent: a right that was taken away ends with the next event. */
  constructor(stream: Pick<Stream, 'send' | 'isBehind' | 'onDrain'>, may: (key: string) => boolean) {
    this.#stream = stream;
    this.#may = may;
    stream.onDrain(() => this.#send());
  }

  change(kind: ChangeKind, lock: LockView): void {
    const before = this.#changes.get(lock.key)?.kind;
    // Never told of it: nothing to take back.
    if (before === 'appeared' && kind === 'gone') this.#changes.delete(lock.key);
    else this.#changes.set(lock.key, { kind: since(before, kind), lock });
    this.#send();
  }

  /** Said once all that is to be told has been. */
  ready(): void {
    this.#state = 'complete';
    this.#send();
  }

  trouble(): void {
    if (this.#state === 'trouble') return;
    this.#state = 'trouble';
    this.#stream.send('trouble', { code: 'unknown' });
  }

  #send(): void {
    for (const [key, { kind, lock }] of this.#changes) {
      if (this.#stream.isBehind) return;
      this.#changes.delete(key);
      if (this.#may(key)) this.#stream.send(kind, withMetadata(lock));
    }
    if (this.#state !== 'complete') return;
    this.#state = 'ready';
    this.#stream.send('ready', {});
  }
}

/** What both come to, for one who was told of neither. */
function since(before: ChangeKind | undefined, kind: ChangeKind): ChangeKind {
  if (before === 'appeared') return 'appeared';
  if (before === 'gone') return 'changed';
  return before === 'changed' && kind === 'renewed' ? 'changed' : kind;
}
