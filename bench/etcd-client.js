/** Calls of etcd's JSON gateway, counted where they are sent: Node's `fetch` for every contender. A watch is no round trip. */

let roundTrips = 0;

/** @type {import('holdfast/etcd').FetchLike} */
export const countedFetch = (url, request) => {
  if (!url.endsWith('/v3/watch')) roundTrips += 1;
  return fetch(url, request);
};

export function etcdRoundTrips() {
  return roundTrips;
}

export const encoded = (/** @type {string} */ text) => Buffer.from(text, 'utf8').toString('base64');

/** @param {typeof countedFetch} send @param {string} url @param {object} body @returns {Promise<any>} */
export async function post(send, url, body) {
  const response = await send(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    redirect: 'manual',
    signal: AbortSignal.timeout(2_000),
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${url}: ${text}`);
  return JSON.parse(text);
}
