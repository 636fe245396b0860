/**
 * Changes that one event stream has not sent yet. A slow reader gets the last state of each lock, so the queue is never
 * longer than the number of locks, with any number of changes.
 */
import type { Stream } from './stream.js';
import { type LockView, withMetadata } from './views.js';

export type ChangeKind = 'appeared' | 'changed' | 'renewed' | 'gone';

/** A lock in events. Serialised on first use and once for all streams: a lock may have a thousand holders and many watchers. */
export class SerialisedLock {
  readonly #view: LockView;
  #data: Buffer | null = null;

  /** `view`: a view with metadata as texts. */
  constructor(view: LockView) {
    this.#view = view;
  }

  get key(): string {
    return this.#view.key;
  }

  /** The lock as JSON. */
  get data(): Buffer {
    this.#data ??= Buffer.from(JSON.stringify(withMetadata(this.#view)));
    return this.#data;
  }
}

/** Locks share a write up to this size: a write for each of 100,000 locks costs more than the locks. */
const WRITE_BYTES = 64 * 1_024;

type Sink = Pick<Stream, 'send' | 'sendAll' | 'isBehind' | 'onDrain'>;

export class StreamQueue {
  readonly #stream: Sink;
  readonly #may: (key: string) => boolean;
  readonly #changes = new Map<string, { readonly kind: ChangeKind; readonly lock: SerialisedLock }>();
  #state: 'new' | 'complete' | 'ready' | 'trouble' = 'new';

  /** `may` is checked before each event is sent, so a revoked right takes effect with the next one. */
  constructor(stream: Sink, may: (key: string) => boolean) {
    this.#stream = stream;
    this.#may = may;
    stream.onDrain(() => this.#send());
  }

  change(kind: ChangeKind, lock: SerialisedLock): void {
    const before = this.#changes.get(lock.key)?.kind;
    // The stream never sent the lock, so no change is left to send.
    if (before === 'appeared' && kind === 'gone') this.#changes.delete(lock.key);
    else this.#changes.set(lock.key, { kind: since(before, kind), lock });
    this.#send();
  }

  /** Sends `ready` after the changes that are queued now. */
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
    while (this.#changes.size > 0) {
      if (this.#stream.isBehind) return;
      this.#sendSome();
    }
    if (this.#state !== 'complete') return;
    this.#state = 'ready';
    this.#stream.send('ready', {});
  }

  #sendSome(): void {
    const events: [ChangeKind, Buffer][] = [];
    let bytes = 0;
    for (const [key, { kind, lock }] of this.#changes) {
      this.#changes.delete(key);
      if (!this.#may(key)) continue;
      events.push([kind, lock.data]);
      bytes += lock.data.length;
      if (bytes > WRITE_BYTES) break;
    }
    this.#stream.sendAll(events);
  }
}

/** Two changes as one, for a reader that has seen neither. */
function since(before: ChangeKind | undefined, kind: ChangeKind): ChangeKind {
  if (before === 'appeared') return 'appeared';
  if (before === 'gone') return 'changed';
  return before === 'changed' && kind === 'renewed' ? 'changed' : kind;
}
