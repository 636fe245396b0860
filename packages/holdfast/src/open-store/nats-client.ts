/**
 * A NATS client made for locks: it never gives up, and notices within seconds a server that vanished without a word.
 */
import { checkServerIdentity } from 'node:tls';
import { InvalidArgumentError } from '../protocol/index.js';
import { type Candidate, importError } from './client-package.js';
import type { Connection } from './connection.js';
import { LateConnection } from './nats-connection.js';

const CONNECT_MS_MAX = 2_000;
const PING_MS = 2_000;
const PINGS_MAX = 2;
const RECONNECT_MS = 250;
const RECONNECT_JITTER_MS = 100;

export interface Target {
  /** HOST:PORT. */
  readonly servers: readonly string[];
  /** Undefined leaves it to the server: with TLS if it wants that. */
  readonly tls: { readonly ca?: string; readonly cert?: string; readonly key?: string } | undefined;
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly token: string | undefined;
  /** What stands in the files. */
  readonly credentials: string | undefined;
  readonly nkey: string | undefined;
  readonly inboxPrefix: string | undefined;
}

export interface OpenedClient {
  readonly client: LateConnection;
  readonly connection: Connection;
}

export type Opener = (target: Target) => Promise<OpenedClient>;

export const NATS_CLIENTS: readonly Candidate<Opener>[] = [
  {
    name: '@nats-io/transport-node',
    async load() {
      const { connect, credsAuthenticator, nkeyAuthenticator } = await importNats();
      return async (target) => {
        const { user, password, token, credentials, nkey, inboxPrefix, tls } = target;
        const options = {
          name: 'holdfast',
          servers: [...target.servers],
          timeout: CONNECT_MS_MAX,
          pingInterval: PING_MS,
          maxPingOut: PINGS_MAX,
          maxReconnectAttempts: -1,
          reconnectTimeWait: RECONNECT_MS,
          reconnectJitter: RECONNECT_JITTER_MS,
          // A password that is being changed must not end the connection for good.
          ignoreAuthErrorAbort: true,
          // They are for debugging, and cost about as much as a request.
          noAsyncTraces: true,
          ...(user === undefined ? {} : { user }),
          ...(password === undefined ? {} : { pass: password }),
          ...(token === undefined ? {} : { token }),
          ...(credentials === undefined
            ? {}
            : { authenticator: tried('creds', credsAuthenticator(bytesOf(credentials))) }),
          ...(nkey === undefined
            ? {}
            : { authenticator: tried('nkey', nkeyAuthenticator(bytesOf(nkey.trim()))) }),
          ...(inboxPrefix === undefined ? {} : { inboxPrefix }),
          ...(tls === undefined ? {} : { tls: { ...tls, checkServerIdentity: identityOf(target.servers) } }),
        };
        const client = await LateConnection.open(() => connect(options));
        const where = `${target.servers.join(', ')}${tls === undefined ? '' : ' over TLS'}`;
        return {
          client,
          connection: { where, trouble: () => client.trouble, end: () => client.end() },
        };
      };
    },
  },
];

async function importNats() {
  try {
    return await import('@nats-io/transport-node');
  } catch (error) {
    throw importError('@nats-io/transport-node', error);
  }
}

/** For an address the client names no host, and a certificate for `localhost` would do. */
function identityOf(servers: readonly string[]): typeof checkServerIdentity {
  const hosts = servers.map((server) => server.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1'));
  return (tried, certificate) => {
    const names = hosts.includes(tried) ? [tried] : hosts;
    const errors = names.map((name) => checkServerIdentity(name, certificate));
    return errors.includes(undefined) ? undefined : errors[0];
  };
}

/** At once: on connecting, the client would not say what is wrong with it, and try again. */
function tried<A extends (nonce?: string) => unknown>(option: string, authenticator: A): A {
  try {
    authenticator('nonce');
    return authenticator;
  } catch (cause) {
    throw new InvalidArgumentError(
      `The file that ${option} names does not hold what NATS calls so: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    );
  }
}

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
