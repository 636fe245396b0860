/** Requests to the service, with the user's API key, which is kept for this tab only. */

const KEY = 'holdfast-key';

export class Refusal extends Error {
  /**
   * @param {number} status
   * @param {string} code
   * @param {string} detail
   * @param {number} retryMs
   */
  constructor(status, code, detail, retryMs) {
    super(detail);
    this.status = status;
    this.code = code;
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
  const { code = '', detail = '' } = isProblem ? JSON.parse(text) : {};
  const retryMs = Number(response.headers.get('retry-after') ?? 0) * 1000;
  throw new Refusal(
    response.status,
    code,
    detail || `The service answered ${response.status}.`,
    retryMs || 0,
  );
}

/** @param {string} namespace */
export async function session(namespace) {
  const response = await ask(`dashboard/session?namespace=${encodeURIComponent(namespace)}`);
  return /** @type {{ principal: string, admin: boolean, roundMs: number }} */ (await response.json());
}

/**
 * Ends the holds that have at most this token. Through the batch, which takes any key.
 * @param {string} lock
 * @param {number} upToToken
 * @param {string | null} reason for those whose holds end
 * @returns {Promise<number>} how many it ended
 */
export async function evict(lock, upToToken, reason) {
  const response = await ask('v2/batch', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ commands: [{ kind: 'evict', key: lock, upToToken, reason }] }),
  });
  const [reply] = (await response.json()).replies;
  if (!reply.problem) return reply.count;
  throw new Refusal(reply.problem.status, reply.problem.code, reply.problem.detail, 0);
}
