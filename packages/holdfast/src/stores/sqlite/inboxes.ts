/** Who listens here, and the way to those who listen elsewhere. */
import type { Why } from '../../protocol/index.js';
import type { Hint } from './inbox-file.js';
import type { WakeFiles } from './wake-files.js';

export type Listener = (key: string, why: Why) => void;

export interface Inboxes {
  /** Hints by inbox. After the commit, never before it: whoever is told must find what it was told of. */
  deliver(hints: ReadonlyMap<string, readonly Hint[]>): void;
  /** Returns what stops it. */
  add(inbox: string, listener: Listener): () => void;
  close(): void;
}

interface Inbox {
  readonly listeners: Set<Listener>;
  readonly stop: () => void;
}

/** `files` is null where no other process can share the database. */
export function inboxes(files: WakeFiles | null): Inboxes {
  const here = new Map<string, Inbox>();

  function tell(listeners: ReadonlySet<Listener>, { key, why }: Hint): void {
    for (const listener of listeners) queueMicrotask(() => listener(key, why));
  }

  function open(name: string): Inbox {
    const listeners = new Set<Listener>();
    const inbox: Inbox = {
      listeners,
      stop: files?.listen(name, (hint) => tell(listeners, hint)) ?? (() => undefined),
    };
    here.set(name, inbox);
    return inbox;
  }

  return {
    deliver(hints) {
      for (const [name, those] of hints) {
        const inbox = here.get(name);
        if (inbox) for (const hint of those) tell(inbox.listeners, hint);
        else files?.send(name, those);
      }
    },
    add(name, listener) {
      const inbox = here.get(name) ?? open(name);
      inbox.listeners.add(listener);
      return () => {
        inbox.listeners.delete(listener);
        if (inbox.listeners.size > 0 || here.get(name) !== inbox) return;
        here.delete(name);
        inbox.stop();
      };
    },
    close() {
      for (const inbox of here.values()) inbox.stop();
      here.clear();
    },
  };
}
