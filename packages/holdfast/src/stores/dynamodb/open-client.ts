/**
 * The client behind a URL. It sends each call once, and limits every wait: the engine retries, since it knows how long
 * that makes sense. Where the URL leaves region or credentials open, the SDK finds them as for every AWS tool.
 */
import { type Candidate, loadFirst, type OpenedClient } from '../clients/opened-client.js';
import { given } from '../clients/url.js';
import type { DynamodbTableClient } from './client.js';
import { LeanClient, type Place } from './lean-client.js';
import { importDynamodb } from './sdk-commands.js';
import type { Credentials } from './signature.js';

/** Less than the 5 s after which a read of a key gives up, so that the caller learns the reason. */
const REQUEST_MS_MAX = 3_000;

/** Each call needs a connection of its own, and renewals must not wait for one (F14). */
const CONNECTIONS_MAX = 256;

export interface Target {
  /** Undefined: from AWS_REGION or the profile, as with every AWS tool. */
  readonly region: string | undefined;
  readonly endpoint: string | undefined;
  /** Undefined: the SDK looks for them in its usual places. */
  readonly credentials: Credentials | undefined;
}

/** What the URL leaves open. */
export interface Settings {
  place(): Promise<Place>;
  credentials(): Promise<Credentials>;
}

export const DYNAMODB_CLIENTS: readonly Candidate<(target: Target) => Settings>[] = [
  {
    name: '@aws-sdk/client-dynamodb',
    async load() {
      const { DynamoDB } = await importDynamodb();
      return ({ region, endpoint, credentials }) => {
        let sent: Sent | null = null;
        const sdk = new DynamoDB({
          ...given({ region, endpoint, credentials }),
          maxAttempts: 1,
          requestHandler: {
            async handle(request: Sent) {
              sent = request;
              throw new Error('Nothing is sent: only the address is wanted.');
            },
            updateHttpClientConfig: () => undefined,
            httpHandlerConfigs: () => ({}),
          },
        });
        return {
          credentials: () => sdk.config.credentials(),
          async place() {
            await sdk.listTables({}).catch((error: unknown) => {
              if (!sent) throw error;
            });
            if (!sent) throw new Error('The AWS SDK named no address.');
            return placeOf(sent);
          },
        };
      };
    },
  },
];

/** A request as the SDK would have sent it, signed. */
interface Sent {
  readonly protocol: string;
  readonly hostname: string;
  readonly port?: number | undefined;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

function placeOf({ protocol, hostname, port, path, headers }: Sent): Place {
  const [, region = ''] = /Credential=[^/]+\/\d+\/([^/]+)\//.exec(headers.authorization ?? '') ?? [];
  const endpoint = new URL(`${protocol}//${hostname}${port === undefined ? '' : `:${port}`}${path}`);
  return { endpoint, region };
}

export async function openClient(
  target: Target,
  clients = DYNAMODB_CLIENTS,
): Promise<OpenedClient<DynamodbTableClient>> {
  const settings = completeSettings(target) ?? (await loadFirst('DynamoDB', clients))(target);
  const client = new LeanClient({
    place: () => settings.place(),
    credentials: () => settings.credentials(),
    requestMs: REQUEST_MS_MAX,
    connectionsMax: CONNECTIONS_MAX,
  });
  const end = async (): Promise<void> => client.destroy();
  return { client, connection: { where: whereOf(target), error: () => null, end } };
}

/** Where the URL says everything, the SDK is not needed. */
function completeSettings({ region, endpoint, credentials }: Target): Settings | null {
  if (region === undefined || endpoint === undefined || credentials === undefined) return null;
  // As the SDK sends them.
  const place = { endpoint: new URL(endpoint.replace(/\/?$/, '/')), region };
  return { place: async () => place, credentials: async () => credentials };
}

function whereOf({ region, endpoint }: Target): string {
  if (endpoint !== undefined) return new URL(endpoint).host;
  return region === undefined ? 'DynamoDB' : `DynamoDB in ${region}`;
}
