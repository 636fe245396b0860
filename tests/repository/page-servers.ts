/**
 * Servers for what the documents and examples run. A block that reads a variable named here gets it, with the URL of
 * a private server behind it; one that uses DynamoDB gets the variables by which every AWS tool finds it. None is started
 * before a block asks for it.
 */
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { DynamoDB } from '@aws-sdk/client-dynamodb';
import {
  available,
  type DynamodbServer,
  type EtcdServer,
  type FirestoreServer,
  type MariadbServer,
  type NatsServer,
  type PostgresServer,
  type RedisCluster,
  type RedisServer,
  type ServerName,
  startDynamodb,
  startEtcd,
  startFirestore,
  startMariadb,
  startNats,
  startPostgres,
  startRedis,
  startRedisCluster,
} from 'holdfast-test-servers';
import { distributedLocksSql } from '../fleets/foreign-distributed-locks.js';
import { type ObjectServer, startObjectServer } from '../guards/object-server.js';
import { jwtOf, openScene, PUBLIC_RIGHTS, type Scene } from '../supabase/scene.js';
import { freePort, type PageService, startPageService } from './page-service.js';
import { hasCommand, run } from './shell.js';
import { root } from './tree.js';

const HOLDFAST = join(root, 'packages/cli/bin/holdfast.js');
const NEEDS: Readonly<Record<string, readonly ServerName[]>> = {
  REDIS_URL: ['redis'],
  REDIS_CLUSTER_NODES: ['redis'],
  REDIS_QUORUM: ['redis'],
  DATABASE_URL: ['postgres'],
  SUPABASE_URL: ['postgres', 'postgrest'],
  SUPABASE_DB_URL: ['postgres', 'postgrest'],
  SUPABASE_SERVICE_ROLE_KEY: [],
  NATS_URL: ['nats'],
  ETCD_URL: ['etcd'],
  MYSQL_URL: ['mariadb'],
  OBJECTS_URL: [],
  HOLDFAST_URL: [],
  HOLDFAST_PORT: [],
};
/** Such a block names no server: in earnest it is Amazon's. */
const USES_DYNAMODB = /@aws-sdk\/client-dynamodb|\bdynamodb:\/\//;

/** The same for Google's: FIRESTORE_EMULATOR_HOST names the emulator to every client. */
const USES_FIRESTORE = /@google-cloud\/firestore|\bfirestore:\/\//;

/** Servers that all blocks share, without a database for each: DynamoDB too. */
const SHARED = new RegExp(
  `${USES_DYNAMODB.source}|${USES_FIRESTORE.source}|\\b(?:REDIS_CLUSTER_NODES|REDIS_QUORUM|SUPABASE_URL|SUPABASE_DB_URL|NATS_URL|ETCD_URL|HOLDFAST_URL)\\b`,
);

function variablesIn(code: string): readonly string[] {
  return Object.keys(NEEDS).filter((variable) => new RegExp(`\\b${variable}\\b`).test(code));
}

/** False skips on a laptop without the server, and throws in CI. */
export function canRun(code: string): boolean {
  // It comes with PostgreSQL from a package of the system, and not with the one from npm.
  if (/^ *psql /m.test(code) && !hasCommand('psql')) return false;
  if (USES_DYNAMODB.test(code) && !available('dynamodb', { own: true })) return false;
  if (USES_FIRESTORE.test(code) && !available('firestore', { own: true })) return false;
  if (/\bcurl /.test(code) && !hasCommand('curl')) return false;
  return variablesIn(code).every((variable) => NEEDS[variable]?.every((server) => available(server)));
}

interface Project {
  readonly scene: Scene;
  readonly gateway: Server;
}

export class PageServers {
  #redis: Promise<RedisServer> | null = null;
  #cluster: Promise<RedisCluster> | null = null;
  #quorum: Promise<readonly RedisServer[]> | null = null;
  #postgres: Promise<PostgresServer> | null = null;
  #supabase: Promise<Project> | null = null;
  #nats: Promise<NatsServer> | null = null;
  #etcd: Promise<EtcdServer> | null = null;
  #mariadb: Promise<MariadbServer> | null = null;
  #objects: Promise<ObjectServer> | null = null;
  #dynamodb: Promise<DynamodbServer> | null = null;
  #firestore: Promise<FirestoreServer> | null = null;
  #service: Promise<PageService> | null = null;
  #database = 0;
  #lastShared: Promise<unknown> = Promise.resolve();

  /** Runs a block with the variables that it reads. Blocks run side by side, unless they would meet each other's locks. */
  async using(code: string, work: (env: Record<string, string>) => Promise<void>): Promise<void> {
    if (!SHARED.test(code)) return await work(await this.envFor(code));
    const before = this.#lastShared;
    const done = before.then(async () => work(await this.envFor(code)));
    this.#lastShared = Promise.allSettled([done]);
    return await done;
  }

  async envFor(code: string): Promise<Record<string, string>> {
    const env: Record<string, string> = USES_DYNAMODB.test(code) ? await this.#awsFor(code) : {};
    if (USES_FIRESTORE.test(code)) Object.assign(env, await this.#googleEnv());
    for (const variable of variablesIn(code)) env[variable] = await this.#valueOf(variable, code);
    return env;
  }

  async stop(): Promise<void> {
    const started = await Promise.all([
      this.#redis,
      this.#cluster,
      this.#postgres,
      this.#nats,
      this.#etcd,
      this.#mariadb,
      this.#objects,
      this.#dynamodb,
      this.#firestore,
    ]);
    for (const server of [...started, ...((await this.#quorum) ?? [])]) await server?.stop();
    const project = await this.#supabase;
    project?.gateway.close();
    await project?.scene.stop();
    await (await this.#service)?.stop();
  }

  async #valueOf(variable: string, code: string): Promise<string> {
    switch (variable) {
      case 'DATABASE_URL':
        return this.#databaseUrl(code);
      case 'REDIS_CLUSTER_NODES': {
        this.#cluster ??= startRedisCluster();
        return (await this.#cluster).nodes.map(({ url }) => url).join(',');
      }
      case 'REDIS_QUORUM': {
        this.#quorum ??= Promise.all([1, 2, 3].map(() => startRedis({ own: true })));
        return (await this.#quorum).map(({ host, port }) => `${host}:${port}`).join(',');
      }
      case 'SUPABASE_URL': {
        this.#supabase ??= startProject();
        const { port } = (await this.#supabase).gateway.address() as AddressInfo;
        return `http://127.0.0.1:${port}`;
      }
      case 'SUPABASE_DB_URL': {
        this.#supabase ??= startProject();
        return (await this.#supabase).scene.databaseUrl;
      }
      case 'NATS_URL': {
        this.#nats ??= startNats({ own: true });
        return (await this.#nats).url;
      }
      case 'ETCD_URL': {
        this.#etcd ??= startEtcd({ own: true });
        return (await this.#etcd).url;
      }
      case 'MYSQL_URL': {
        this.#mariadb ??= startMariadb();
        return (await this.#mariadb).createDatabase();
      }
      case 'OBJECTS_URL': {
        this.#objects ??= startObjectServer();
        return (await this.#objects).url;
      }
      case 'HOLDFAST_URL': {
        this.#service ??= startPageService();
        return (await this.#service).url;
      }
      case 'HOLDFAST_PORT':
        return freePort();
      case 'SUPABASE_SERVICE_ROLE_KEY':
        return jwtOf({ role: 'service_role' });
      default: {
        this.#redis ??= startRedis({ own: true });
        this.#database = (this.#database + 1) % 16;
        return `${(await this.#redis).url}/${this.#database}`;
      }
    }
  }

  /** With an empty table, and no other, unless the block is about making it. */
  async #awsFor(code: string): Promise<Record<string, string>> {
    this.#dynamodb ??= startDynamodb({ own: true });
    const { url } = await this.#dynamodb;
    const env = {
      AWS_ENDPOINT_URL_DYNAMODB: url,
      AWS_REGION: 'eu-west-1',
      AWS_ACCESS_KEY_ID: 'test',
      AWS_SECRET_ACCESS_KEY: 'test',
    };
    const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
    const client = new DynamoDB({ endpoint: url, region: 'eu-west-1', credentials });
    try {
      const { TableNames = [] } = await client.listTables({});
      for (const TableName of TableNames) await client.deleteTable({ TableName });
    } finally {
      client.destroy();
    }
    if (!/holdfast migrate|createTable\(/.test(code)) {
      await run(process.execPath, [HOLDFAST, 'migrate', '--store', 'dynamodb:///'], { cwd: root, env });
    }
    return env;
  }

  async #googleEnv(): Promise<Record<string, string>> {
    this.#firestore ??= startFirestore({ own: true });
    const { host, port } = await this.#firestore;
    return {
      FIRESTORE_EMULATOR_HOST: `${host}:${port}`,
      GOOGLE_CLOUD_PROJECT: 'my-project',
      // The client would look for a metadata server of Google's otherwise.
      METADATA_SERVER_DETECTION: 'none',
    };
  }

  /** With the schema in it, unless the block is about making it. */
  async #databaseUrl(code: string): Promise<string> {
    this.#postgres ??= startPostgres({ own: true });
    const url = await (await this.#postgres).createDatabase();
    if (/^(?:holdfast migrate|await migrate\()/m.test(code)) return url;
    await run(process.execPath, [HOLDFAST, 'migrate', '--store', url], { cwd: root });
    return url;
  }
}

/** Supabase has PostgREST under a path of its own. The project has the table `distributed_locks` and its functions. */
async function startProject(): Promise<Project> {
  const scene = await openScene({ application: `${await distributedLocksSql()};${PUBLIC_RIGHTS}` });
  const gateway = createServer((incoming, outgoing) => {
    const { method, headers, url = '' } = incoming;
    const target = new URL(url.replace(/^\/rest\/v1/, ''), scene.postgrest.url);
    const forwarded = request(target, { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    forwarded.on('error', (error) => outgoing.destroy(error));
    incoming.pipe(forwarded);
  });
  await new Promise<void>((resolve) => gateway.listen(0, '127.0.0.1', resolve));
  return { scene, gateway };
}
