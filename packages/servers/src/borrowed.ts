/** A server that the user named: used as it is, and left alone. */
import type { Controls } from './supervise.js';

export interface Borrowed extends Controls {
  readonly url: string;
}

const VARIABLES = { redis: 'HOLDFAST_TEST_REDIS_URL', postgres: 'HOLDFAST_TEST_POSTGRES_URL' } as const;
const PORTS = { redis: 6379, postgres: 5432 } as const;

export function givenUrl(server: 'redis' | 'postgres'): string | undefined {
  return process.env[VARIABLES[server]] || undefined;
}

export function borrowed(server: 'redis' | 'postgres', url: string): Borrowed {
  const { hostname, port } = new URL(url);
  const refuse = (): never => {
    throw new Error(
      `${VARIABLES[server]} names a server that is not ours to stop: start a private one with { own: true }`,
    );
  };
  return {
    url,
    host: hostname,
    port: port === '' ? PORTS[server] : Number(port),
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
