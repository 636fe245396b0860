/**
 * The stream of events, opened again whenever it ends. Read with fetch: EventSource cannot send a key.
 */
import { ask, Refusal } from './service.js';
import { after } from './time.js';

/**
 * @typedef {{ kind: 'connecting' | 'reading' }
 *   | { kind: 'lost', why: string, retryMs: number }
 *   | { kind: 'refused', status: number, why: string }} State
 * @typedef {{ onState: (state: State) => void, onEvent: (event: string, data: any) => void }} Listener
 */

/** The service says something every 15 s; two of these missed, and it is gone. */
const SILENCE_MS = 35_000;
const RETRY_MS_MAX = 15_000;

export class Connection {
  /** @param {Listener} listener */
  constructor(listener) {
    this.listener = listener;
    this.leaving = new AbortController();
    this.wake = () => {};
  }

  /** Begins, or begins again, with the key there is now. */
  open() {
    this.close();
    this.leaving = new AbortController();
    void this.keepOpen(this.leaving.signal);
  }

  close() {
    this.leaving.abort();
    this.wake();
  }

  /** Does not wait any longer before the next try. */
  hurry() {
    this.wake();
  }

  /** @param {AbortSignal} left */
  async keepOpen(left) {
    let failures = 0;
    while (!left.aborted) {
      if (failures === 0) this.listener.onState({ kind: 'connecting' });
      const end = await this.readAll(left);
      if (left.aborted) return;
      if (end.refusal && [401, 403].includes(end.refusal.status)) {
        this.listener.onState({ kind: 'refused', status: end.refusal.status, why: end.refusal.message });
        return;
      }
      failures = end.wasOpen ? 1 : failures + 1;
      const backoffMs = Math.min(500 * 2 ** failures, RETRY_MS_MAX) * (0.75 + Math.random() / 2);
      const retryMs = Math.max(backoffMs, end.refusal?.retryMs ?? 0);
      this.listener.onState({ kind: 'lost', why: end.refusal?.message ?? '', retryMs });
      await new Promise((resolve) => {
        const cancel = after(retryMs, () => resolve(null));
        this.wake = () => {
          cancel();
          resolve(null);
        };
      });
    }
  }

  /**
   * @param {AbortSignal} left
   * @returns {Promise<{ wasOpen: boolean, refusal?: Refusal }>}
   */
  async readAll(left) {
    const attempt = new AbortController();
    const end = () => attempt.abort();
    left.addEventListener('abort', end);
    let cancel = after(SILENCE_MS, end);
    let wasOpen = false;
    try {
      const { body } = await ask('v2/events', { signal: attempt.signal });
      const reader = /** @type {ReadableStream<Uint8Array>} */ (body).getReader();
      const decoder = new TextDecoder();
      wasOpen = true;
      this.listener.onState({ kind: 'reading' });
      let rest = '';
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        cancel();
        cancel = after(SILENCE_MS, end);
        const blocks = (rest + decoder.decode(part.value, { stream: true })).split('\n\n');
        rest = blocks.pop() ?? '';
        if (left.aborted) break;
        for (const block of blocks) this.hear(block);
      }
      return { wasOpen };
    } catch (error) {
      return error instanceof Refusal ? { wasOpen, refusal: error } : { wasOpen };
    } finally {
      cancel();
      left.removeEventListener('abort', end);
      attempt.abort();
    }
  }

  /** @param {string} block */
  hear(block) {
    const event = /^event: (.*)$/m.exec(block)?.[1];
    const data = /^data: (.*)$/m.exec(block)?.[1];
    if (event !== undefined && data !== undefined) this.listener.onEvent(event, JSON.parse(data));
  }
}
