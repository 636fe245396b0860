/**
 * A DynamoDB client set up for locks: a limit on every wait, and each command sent once. The engine retries, since it
 * knows how long that makes sense; the SDK's own retries are off.
 */
import { type Candidate, CONNECT_MS_MAX, importError, type OpenedClient } from '../clients/opened-client.js';
import { given } from '../clients/url.js';
import type { DynamodbTableClient } from './client.js';

/** Less than the 5 s after which a read of a key gives up, so that the caller learns the reason. */
const REQUEST_MS_MAX = 3_000;

/** Each call needs a connection of its own, and renewals must not wait for one (F14). The SDK's default is 50. */
const CONNECTIONS_MAX = 256;

export interface Target {
  /** Undefined: from AWS_REGION or the profile, as with every AWS tool. */
  readonly region: string | undefined;
  readonly endpoint: string | undefined;
  /** Undefined: the SDK looks for them in its usual places. */
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string } | undefined;
}

export type Opener = (target: Target) => OpenedClient<DynamodbTableClient>;

export const DYNAMODB_CLIENTS: readonly Candidate<Opener>[] = [
  {
    name: '@aws-sdk/client-dynamodb',
    async load() {
      const { DynamoDB } = await importDynamodb();
      return (target) => {
        const { region, endpoint, credentials } = target;
        const client = new DynamoDB({
          ...given({ region, endpoint, credentials }),
          maxAttempts: 1,
          requestHandler: {
            connectionTimeout: CONNECT_MS_MAX,
            requestTimeout: REQUEST_MS_MAX,
            // Without this, recent versions only log a warning.
            throwOnRequestTimeout: true,
            httpAgent: { maxSockets: CONNECTIONS_MAX },
            httpsAgent: { maxSockets: CONNECTIONS_MAX },
          },
        });
        const end = async (): Promise<void> => client.destroy();
        return { client, connection: { where: whereOf(target), error: () => null, end } };
      };
    },
  },
];

async function importDynamodb() {
  try {
    return await import('@aws-sdk/client-dynamodb');
  } catch (error) {
    throw importError('@aws-sdk/client-dynamodb', error);
  }
}

function whereOf({ region, endpoint }: Target): string {
  if (endpoint !== undefined) return new URL(endpoint).host;
  return region === undefined ? 'DynamoDB' : `DynamoDB in ${region}`;
}
