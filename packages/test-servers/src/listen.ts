/** Binds a server of this process to a free port on loopback. */
import type { Server } from 'node:net';
import { freePort } from './ports.js';
import { ignore } from './system-error.js';

const PORTS_MAX = 20;

export interface Listening<Bound> {
  readonly server: Bound;
  readonly port: number;
  close(): Promise<void>;
}

export async function listenSomewhere<Bound extends Server>(make: () => Bound): Promise<Listening<Bound>> {
  for (let attempt = 0; attempt < PORTS_MAX; attempt += 1) {
    const port = await freePort();
    const server = make();
    const bound = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen({ host: '127.0.0.1', port, exclusive: true }, () => resolve(true));
    });
    // A connection that breaks while it is accepted fails in the client.
    server.on('error', ignore);
    const close = (): Promise<void> => new Promise((resolve) => server.close(() => resolve()));
    if (bound) return { server, port, close };
  }
  throw new Error(`the proxy found ${PORTS_MAX} ports in a row taken`);
}
