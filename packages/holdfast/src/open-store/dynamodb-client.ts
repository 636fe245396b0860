/**
 * A DynamoDB client made for locks: bounded in everything that it waits for, and sending each command once. A command
 * that failed is asked again by the engine, which knows how long that makes sense; the SDK's own attempts would come
 * between.
 */
import type { DynamodbTableClient } from '../stores/dynamodb/index.js';
import { type Candidate, importError } from './client-package.js';
import type { Connection } from './connection.js';

const CONNECT_MS_MAX = 2_000;
/** Those who look at a key give up after 5 s, and want to know why. */
const REQUEST_MS_MAX = 3_000;

/** A call has a connection to itself, and renewals must not wait for one (F14). The SDK has 50 unless told. */
const CONNECTIONS_MAX = 256;

export interface Target {
  /** What is left out comes from AWS_REGION or the profile, as with every AWS tool. */
  readonly region: string | undefined;
  readonly endpoint: string | undefined;
  /** Left out, the SDK looks for them in its usual places. */
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string } | undefined;
}

export interface OpenedClient {
  readonly client: DynamodbTableClient;
  readonly connection: Connection;
}

export type Opener = (target: Target) => OpenedClient;

export const DYNAMODB_CLIENTS: readonly Candidate<Opener>[] = [
  {
    name: '@aws-sdk/client-dynamodb',
    async load() {
      const { DynamoDB } = await importDynamodb();
      return (target) => {
        const { region, endpoint, credentials } = target;
        const client = new DynamoDB({
          ...(region === undefined ? {} : { region }),
          ...(endpoint === undefined ? {} : { endpoint }),
          ...(credentials === undefined ? {} : { credentials }),
          maxAttempts: 1,
          requestHandler: {
            connectionTimeout: CONNECT_MS_MAX,
            requestTimeout: REQUEST_MS_MAX,
            // Without it, recent versions only write a warning.
            throwOnRequestTimeout: true,
            httpAgent: { maxSockets: CONNECTIONS_MAX },
            httpsAgent: { maxSockets: CONNECTIONS_MAX },
          },
        });
        const end = async (): Promise<void> => client.destroy();
        return { client, connection: { where: whereOf(target), trouble: () => null, end } };
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
