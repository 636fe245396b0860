/** Requests to the service, with the user's API key, which is kept for this tab only, and the stream of events. */
import { after, Slices } from './time.js';

const KEY = 'holdfast-key';

export class Refusal extends Error {
  /**
   * @param {number} status
   * @param {string} detail
   * @param {number} [retryMs]
   */
  constructor(status, detail, retryMs = 0) {
    super(detail);
    this.status = status;
    this.retryMs = retryMs;
  }
}

export function key() {
  return sessionStorage.getItem(KEY);
}

/** @param {string | null} text */
export function setKey(text) {
  if (text === null) sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, text);
}

/**
 * Throws a `Refusal` for what was answered with a problem; anything else that it throws says nothing about the outcome.
 * @param {string} path
 * @param {RequestInit} [init]
 */
export async function ask(path, init = {}) {
  const known = key();
  const authorization = known === null ? {} : { authorization: `Bearer ${known}` };
  const headers = { ...authorization, ...init.headers };
  const response = await fetch(path, {
    cache: 'no-store',
    credentials: 'omit',
    redirect: 'error',
    ...init,
    headers,
  });
  if (response.ok) return response;
  const text = await response.text();
  const isProblem = response.headers.get('content-type')?.startsWith('application/problem+json');
  const { detail } = isProblem ? JSON.parse(text) : {};
  const retryMs = Number(response.headers.get('retry-after') ?? 0) * 1000;
  throw new Refusal(response.status, detail || `The service answered ${response.status}.`, retryMs || 0);
}

/** @param {string} namespace */
export async function session(namespace) {
  const response = await ask(`dashboard/session?namespace=${encodeURIComponent(namespace)}`);
  return /** @type {{ principal: string, admin: boolean, roundMs: number, version: string, service: string, storeMs: number | null }} */ (
    await response.json()
  );
}

/**
 * Ends the holds that have a token in this range. Through the batch, which takes any key.
 * @param {string} lock
 * @param {number} fromToken
 * @param {number} upToToken
 * @param {string | null} reason for those whose holds end
 * @returns {Promise<number>} how many it ended
 */
export async function evict(lock, fromToken, upToToken, reason) {
  const response = await ask('v2/batch', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ commands: [{ kind: 'evict', key: lock, fromToken, upToToken, reason }] }),
  });
  const [reply] = (await response.json()).replies;
  if (!reply.problem) return reply.count;
  throw new Refusal(reply.problem.status, reply.problem.detail);
}

/**
 * @typedef {{ kind: 'connecting' | 'reading' }
 *   | { kind: 'lost', why: string, retryMs: number }
 *   | { kind: 'refused', status: number, why: string }} State
 * @typedef {{ onState: (state: State) => void, onEvent: (event: string, data: any) => void }} Listener
 */

/** The service sends a comment every 15 s: without two of them, the connection is lost. */
const SILENCE_MS = 35_000;
const RETRY_MS_MAX = 15_000;

/** The stream of events, opened again whenever it ends. Read with fetch: EventSource cannot send a key. */
export class Connection {
  /** @param {Listener} listener */
  constructor(listener) {
    this.listener = listener;
    this.leaving = new AbortController();
    /** Ends the wait before the next try. */
    this.wake = () => {};
  }

  /** Opens the stream, or opens it again, with the current API key. */
  open() {
    this.close();
    this.leaving = new AbortController();
    void this.keepOpen(this.leaving.signal);
  }

  close() {
    this.leaving.abort();
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
      const slices = new Slices();
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        cancel();
        cancel = after(SILENCE_MS, end);
        const blocks = (rest + decoder.decode(part.value, { stream: true })).split('\n\n');
        rest = blocks.pop() ?? '';
        for (const block of blocks) {
          if (slices.isOver) await slices.next();
          if (left.aborted) break;
          this.hear(block);
        }
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
