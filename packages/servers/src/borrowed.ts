/** A server that the user named: used as it is, and left alone. */
import type { Controls } from './supervise.js';

export interface Borrowed extends Controls {
  readonly url: string;
}

export function borrowed(variable: string, url: string, defaultPort: number): Borrowed {
  const { hostname, port } = new URL(url);
  const refuse = (): never => {
    throw new Error(`${variable} names a server that is not ours to stop: start a private one with { own: true }`);
  };
  return {
    url,
    host: hostname,
    port: port === '' ? defaultPort : Number(port),
    get pid() {
      return refuse();
    },
    restart: async () => refuse(),
    pause: async () => refuse(),
    resume: async () => refuse(),
    kill: async () => refuse(),
    stop: async () => undefined,
  };
}
