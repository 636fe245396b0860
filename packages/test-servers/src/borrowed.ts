/** A server that others use too, or that an environment variable names: never stopped or emptied. */
import type { Controls } from './supervise.js';

export interface Borrowed extends Controls {
  readonly url: string;
}

const VARIABLES = {
  redis: 'HOLDFAST_TEST_REDIS_URL',
  postgres: 'HOLDFAST_TEST_POSTGRES_URL',
  nats: 'HOLDFAST_TEST_NATS_URL',
  mariadb: 'HOLDFAST_TEST_MYSQL_URL',
  etcd: 'HOLDFAST_TEST_ETCD_URL',
  dynamodb: 'HOLDFAST_TEST_DYNAMODB_URL',
  firestore: 'HOLDFAST_TEST_FIRESTORE_URL',
} as const;
const PORTS = {
  redis: 6379,
  postgres: 5432,
  nats: 4222,
  mariadb: 3306,
  etcd: 2379,
  dynamodb: 8000,
  firestore: 8080,
} as const;

type Borrowable = keyof typeof VARIABLES;

export const isBorrowable = (server: string): server is Borrowable => Object.hasOwn(VARIABLES, server);

export function givenUrl(server: Borrowable): string | undefined {
  return process.env[VARIABLES[server]] || undefined;
}

export function borrowed(server: Borrowable, url: string): Borrowed {
  const { hostname, port } = new URL(url);
  const refuse = (): never => {
    throw new Error(
      `others use this server too, or ${VARIABLES[server]} names it: start a private one with { own: true }`,
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
