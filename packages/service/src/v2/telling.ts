/**
 * What one stream is still to be told. Whoever reads slower than things change is told the last of each lock, and what
 * waits for them is bounded by the number of locks, however many changes there are.
 */
import type { Stream } from './stream.js';
import type { ChangeKind, ToldLock } from './told-lock.js';

type Sink = Pick<Stream, 'send' | 'sendJson' | 'isBehind' | 'onDrain'>;

export class Telling {
  readonly #stream: Sink;
  readonly #may: (key: string) => boolean;
  readonly #changes = new Map<string, { readonly kind: ChangeKind; readonly lock: ToldLock }>();
  #state: 'new' | 'complete' | 'ready' | 'trouble' = 'new';

  /** `may` is asked right before each is sent: a right that was taken away ends with the next event. */
  constructor(stream: Sink, may: (key: string) => boolean) {
    this.#stream = stream;
    this.#may = may;
    stream.onDrain(() => this.#send());
  }

  change(kind: ChangeKind, lock: ToldLock): void {
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
      if (this.#may(key)) this.#stream.sendJson(kind, lock.data);
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
