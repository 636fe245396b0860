/**
 * Starts what answers HTTP, and asks it. The client writes bytes on connections that stay open and reads no more of an
 * answer than it must: what is measured should be the server.
 */
import { fork } from 'node:child_process';
import { connect } from 'node:net';

/** @typedef {{ url: string, key: string, stop: () => void }} Server */

/** @typedef {'service' | 'access' | 'bare'} Kind */

/** @param {Kind} kind @param {string} [store] its URL; default memory @returns {Promise<Server>} */
export function startServer(kind, store = '') {
  const child = fork(new URL('./service-process.js', import.meta.url), [kind, store]);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`The server ended with ${code}.`)));
    child.once('message', (said) => {
      resolve({ .../** @type {{ url: string, key: string }} */ (said), stop: () => child.disconnect() });
    });
  });
}

/** One request at a time on one connection. @param {Server} server */
function openWire({ url, key }) {
  const { hostname, port, host } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  let text = '';
  /** @type {{ resolve: (body: string) => void, reject: (error: Error) => void } | null} */
  let waiting = null;
  const fail = (/** @type {Error} */ error) => waiting?.reject(error);
  socket.on('error', fail).on('close', () => fail(new Error('The server hung up.')));
  socket.setEncoding('latin1').on('data', (chunk) => {
    text += chunk;
    const at = text.indexOf('\r\n\r\n');
    if (at === -1) return;
    const end = at + 4 + Number(/content-length: (\d+)/.exec(text)?.[1] ?? 0);
    if (text.length < end) return;
    const body = text.slice(at + 4, end);
    const isFine = text.startsWith('HTTP/1.1 200 ');
    text = '';
    if (isFine) waiting?.resolve(body);
    else fail(new Error(`The server answered ${body}`));
  });
  const common = `HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\n`;
  return {
    /** @param {string} path @param {string} body @returns {Promise<string>} */
    post(path, body) {
      return new Promise((resolve, reject) => {
        waiting = { resolve, reject };
        socket.write(`POST ${path} ${common}content-length: ${body.length}\r\n\r\n${body}`);
      });
    },
    close: () => socket.destroy(),
  };
}

/** Acquire and release as `/v2` has them, a connection each loop. @param {Kind} kind @returns {import('./types.d.ts').Contender} */
export function overHttp(kind) {
  return {
    async open({ url, ttlMs }) {
      const server = await startServer(kind, url);
      /** @type {ReturnType<typeof openWire>[]} */
      const wires = [];
      return {
        cycle(key) {
          const wire = openWire(server);
          wires.push(wire);
          const lock = `/v2/locks/bench/${encodeURIComponent(key)}`;
          const wanted = JSON.stringify({ ttl: ttlMs });
          return async () => {
            const { hold } = JSON.parse(await wire.post(`${lock}/acquire`, wanted));
            await wire.post(`${lock}/release`, JSON.stringify({ hold }));
          };
        },
        async close() {
          for (const wire of wires) wire.close();
          server.stop();
        },
      };
    },
  };
}
