/**
 * Free ports from 20000 to 32000. Client sockets have ports above that, so none of them can take the port of a server that
 * is being restarted.
 */
import { createServer } from 'node:net';
import { draw } from './clock.js';

const FROM = 20_000;
const TO = 32_000;
const TRIES_MAX = 50;

function canBind(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen({ host: '127.0.0.1', port, exclusive: true }, () => probe.close(() => resolve(true)));
  });
}

/** Free a moment ago. Another process may bind it first; the caller then tries another port. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < TRIES_MAX; attempt += 1) {
    const port = draw(FROM, TO);
    if (await canBind(port)) return port;
  }
  throw new Error(`no free port between ${FROM} and ${TO} in ${TRIES_MAX} tries`);
}
