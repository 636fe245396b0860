/**
 * The servers that a run needs: one of each engine for all contenders, private, started when the first run asks for it.
 * Each run finds it empty: Redis is flushed, in PostgreSQL and MySQL it gets a database of its own, tables, documents and streams are deleted.
 * Both sync every commit to the disk, as they do unless told otherwise; only where nobody looks at the figures they are
 * spared that. The emulators of DynamoDB and Firestore keep everything in memory.
 */
import {
  available,
  startDynamodb,
  startEtcd,
  startFirestore,
  startMariadb,
  startNats,
  startPostgres,
  startRedis,
} from 'holdfast-test-servers';
import { Redis } from 'ioredis';
import { makeTable, openDynamodbApart } from './dynamodb-client.js';
import { encoded, post } from './etcd-client.js';
import { deleteEverything, openFirestoreApart } from './firestore-client.js';
import { askJetstream, openNatsApart } from './nats-client.js';
import { cpuUsOf } from './process-cpu.js';

/** @typedef {{ pids: readonly number[], url: () => Promise<string>, version: () => Promise<string>, stop: () => Promise<void> }} Server */

/** @returns {Promise<Server>} */
async function redis() {
  const server = await startRedis({ own: true });
  const client = new Redis(server.url);
  return {
    pids: [server.pid],
    async url() {
      await client.flushall();
      return server.url;
    },
    version: async () => /redis_version:(\S+)/.exec(await client.info('server'))?.[1] ?? 'unknown',
    async stop() {
      client.disconnect();
      await server.stop();
    },
  };
}

/** Three of them, for a quorum. @returns {Promise<Server>} */
async function quorum() {
  const servers = await Promise.all([1, 2, 3].map(() => redis()));
  const [one] = servers;
  return {
    pids: servers.flatMap(({ pids }) => pids),
    url: async () => (await Promise.all(servers.map((server) => server.url()))).join(),
    version: async () => (await one?.version()) ?? 'unknown',
    stop: async () => {
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
}

/** @param {boolean} durable @returns {Promise<Server>} */
async function postgres(durable) {
  const server = await startPostgres({ own: true, version: '15', fsync: durable });
  return {
    pids: [server.pid],
    url: () => server.createDatabase(),
    version: async () => server.version.split(' ')[0] ?? 'unknown',
    stop: () => server.stop(),
  };
}

/** @param {boolean} durable @returns {Promise<Server>} */
async function mysql(durable) {
  const server = await startMariadb({ own: true, fsync: durable });
  return {
    pids: [server.pid],
    url: () => server.createDatabase(),
    version: async () => server.version(),
    stop: () => server.stop(),
  };
}

/** @param {boolean} measured @returns {Promise<Server>} */
async function dynamodb(measured) {
  const server = await startDynamodb({ own: true });
  const client = openDynamodbApart(server.url);
  if (measured) await warmUp(server.url, client);
  return {
    pids: [server.pid],
    async url() {
      const { TableNames: tables = [] } = await client.listTables({});
      for (const TableName of tables) await client.deleteTable({ TableName });
      return server.url;
    },
    version: async () => 'Local (an emulator)',
    async stop() {
      client.destroy();
      await server.stop();
    },
  };
}

const WARM_UP_MS = 4_000;

/**
 * An emulator is a Java program, slow until it has run for a while: whoever comes first would pay for that.
 * @param {(key: string) => Promise<unknown>} calls all kinds of calls that the contenders make, with conditions that hold and that fail
 */
async function warmedBy(calls) {
  const until = performance.now() + WARM_UP_MS;
  const loop = async (/** @type {string} */ key) => {
    while (performance.now() < until) await calls(key);
  };
  await Promise.all(Array.from({ length: 8 }, (_, index) => loop(`warm:${index}`)));
}

/** @param {string} url @param {import('@aws-sdk/client-dynamodb').DynamoDB} client */
async function warmUp(url, client) {
  const TableName = 'warm-up';
  await makeTable(url, TableName);
  const names = { ExpressionAttributeNames: { '#key': 'key' } };
  await warmedBy(async (key) => {
    const Key = { key: { S: key } };
    const put = { TableName, Item: Key, ConditionExpression: 'attribute_not_exists(#key)', ...names };
    await client.putItem(put);
    await client.putItem(put).catch(() => 'the item is there, as it should be');
    await client.updateItem({
      TableName,
      Key,
      UpdateExpression: 'SET #a = :a, #b = :b REMOVE #c',
      ConditionExpression: 'attribute_not_exists(#a) OR (attribute_exists(#key) AND #a < :a)',
      ExpressionAttributeNames: { '#key': 'key', '#a': 'a', '#b': 'b', '#c': 'c' },
      ExpressionAttributeValues: { ':a': { N: '1' }, ':b': { S: 'b' } },
      ReturnValues: 'ALL_NEW',
    });
    await client.deleteItem({
      TableName,
      Key,
      ConditionExpression: 'attribute_exists(#key)',
      ...names,
    });
  });
}

/** @param {boolean} measured @returns {Promise<Server>} */
async function firestore(measured) {
  const server = await startFirestore({ own: true });
  if (measured) {
    const client = openFirestoreApart(server.url);
    await warmedBy(async (key) => {
      const document = client.collection('warm-up').doc(key);
      const { writeTime } = await document.create({ a: 1 });
      await document.create({ a: 1 }).catch(() => 'the document is there, as it should be');
      const { writeTime: lastUpdateTime } = await document.update({ a: 2 }, { lastUpdateTime: writeTime });
      await document.get();
      await document.delete({ lastUpdateTime });
    });
    await client.terminate();
  }
  return {
    pids: [server.pid],
    async url() {
      await deleteEverything(server.url);
      return server.url;
    },
    version: async () => 'emulator',
    stop: () => server.stop(),
  };
}

/** @returns {Promise<Server>} */
async function nats() {
  const server = await startNats({ own: true });
  const connection = await openNatsApart(server.url);
  return {
    pids: [server.pid],
    async url() {
      const { streams } = await askJetstream(connection, 'STREAM.NAMES');
      for (const stream of streams ?? []) await askJetstream(connection, `STREAM.DELETE.${stream}`);
      return server.url;
    },
    version: async () => connection.info?.version ?? 'unknown',
    async stop() {
      await connection.close();
      await server.stop();
    },
  };
}

/** @returns {Promise<Server>} */
async function etcd() {
  const server = await startEtcd({ own: true });
  return {
    pids: [server.pid],
    async url() {
      // All keys.
      await post(fetch, `${server.url}/v3/kv/deleterange`, { key: encoded('\0'), range_end: encoded('\0') });
      return server.url;
    },
    version: async () => String((await post(fetch, `${server.url}/v3/maintenance/status`, {})).version),
    stop: () => server.stop(),
  };
}

const START = {
  ...{ redis, quorum, postgres, mysql, dynamodb, firestore, nats, etcd },
  ...{ 'distributed-locks': postgres, 'lock-service-central': postgres },
  ...{ 'redis-served': redis, 'postgres-served': postgres },
};

/** @param {import('./types.d.ts').EngineName} engine @returns {engine is keyof typeof START} */
function isServer(engine) {
  return engine in START;
}

/**
 * False for the emulator of Firestore where it is not installed, which is told: unlike the other servers, it comes neither
 * with npm nor with the system's packages.
 * @param {import('./types.d.ts').EngineName} engine
 */
export function canStart(engine) {
  return engine !== 'firestore' || available('firestore', { own: true });
}

export class Servers {
  /** @type {Map<import('./types.d.ts').EngineName, Promise<Server>>} */
  #started = new Map();
  #measured;

  /** @param {{ measured: boolean }} options whether anybody will look at the figures */
  constructor({ measured }) {
    this.#measured = measured;
  }

  /** Where a run of this engine goes; empty where the engine has no server. @param {import('./types.d.ts').EngineName} engine */
  async urlFor(engine) {
    if (!isServer(engine)) return '';
    const server = this.#started.get(engine) ?? START[engine](this.#measured);
    this.#started.set(engine, server);
    return (await server).url();
  }

  /** Its processor time so far, in microseconds, where there is a server and that can be told. @param {import('./types.d.ts').EngineName} engine */
  async cpuUs(engine) {
    const server = await this.#started.get(engine);
    if (!server) return undefined;
    const all = server.pids.map(cpuUsOf);
    return all.reduce((sum, one) => (sum === undefined || one === undefined ? undefined : sum + one), 0);
  }

  /** Of those that were started. @returns {Promise<Record<string, string>>} */
  async versions() {
    const known = [...this.#started].map(async ([engine, server]) => [
      engine,
      await (await server).version(),
    ]);
    return Object.fromEntries(await Promise.all(known));
  }

  async stop() {
    for (const server of this.#started.values()) await (await server).stop();
    this.#started.clear();
  }
}
