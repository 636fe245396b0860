/**
 * A NATS client set up for locks: it never gives up, and notices within seconds a server that vanished without closing
 * the connection.
 */
import { checkServerIdentity } from 'node:tls';
import { InvalidArgumentError } from '../../protocol/index.js';
import { messageOf } from '../clients/errors.js';
import {
  type Candidate,
  CONNECT_MS_MAX,
  importError,
  type OpenedClient,
  PING_MS,
} from '../clients/opened-client.js';
import { given } from '../clients/url.js';
import { LateConnection } from './late-connection.js';

const PINGS_MAX = 2;
const RECONNECT_MS = 250;
const RECONNECT_JITTER_MS = 100;

export interface Target {
  /** HOST:PORT. */
  readonly servers: readonly string[];
  /** Undefined: TLS if the server asks for it. */
  readonly tls: { readonly ca?: string; readonly cert?: string; readonly key?: string } | undefined;
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly token: string | undefined;
  /** The content of the files. */
  readonly credentials: string | undefined;
  readonly nkey: string | undefined;
  readonly inboxPrefix: string | undefined;
}

export type Opener = (target: Target) => Promise<OpenedClient<LateConnection>>;

export const NATS_CLIENTS: readonly Candidate<Opener>[] = [
  {
    name: '@nats-io/transport-node',
    async load() {
      const { connect, credsAuthenticator, nkeyAuthenticator } = await importNats();
      return async (target) => {
        const { user, password, token, credentials, nkey, inboxPrefix, tls } = target;
        const authenticator =
          (credentials !== undefined && tried('creds', credsAuthenticator(bytesOf(credentials)))) ||
          (nkey !== undefined && tried('nkey', nkeyAuthenticator(bytesOf(nkey.trim())))) ||
          undefined;
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
          // Traces are for debugging, and cost about as much as a request.
          noAsyncTraces: true,
          ...given({
            user,
            pass: password,
            token,
            authenticator,
            inboxPrefix,
            tls: tls && { ...tls, checkServerIdentity: identityOf(target.servers) },
          }),
        };
        const client = await LateConnection.open(() => connect(options));
        const where = `${target.servers.join(', ')}${tls === undefined ? '' : ' over TLS'}`;
        return { client, connection: { where, error: () => client.error, end: () => client.end() } };
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

/** Given an address, the client checks no host, and would accept a certificate for `localhost`. */
function identityOf(servers: readonly string[]): typeof checkServerIdentity {
  const hosts = servers.map((server) => server.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1'));
  return (tried, certificate) => {
    const names = hosts.includes(tried) ? [tried] : hosts;
    const errors = names.map((name) => checkServerIdentity(name, certificate));
    return errors.includes(undefined) ? undefined : errors[0];
  };
}

/** Tests the credentials at once: on connecting, the client would hide the error and try again. */
function tried<A extends (nonce?: string) => unknown>(option: string, authenticator: A): A {
  try {
    authenticator('nonce');
    return authenticator;
  } catch (cause) {
    throw new InvalidArgumentError(
      `The file that ${option} names is not a NATS ${option} file: ${messageOf(cause)}`,
      { cause },
    );
  }
}

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
