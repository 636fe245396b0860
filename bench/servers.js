/**
 * The servers that a run needs: one of each engine for all contenders, private, started when the first run asks for it.
 * Each run finds it empty: Redis is flushed, in PostgreSQL and MySQL it gets a database of its own, tables and streams are deleted.
 * Both sync every commit to the disk, as they do unless told otherwise; only where nobody looks at the figures they are
 * spared that. The emulator of DynamoDB keeps its tables in memory.
 */
import {
  startDynamodb,
  startEtcd,
  startMariadb,
  startNats,
  startPostgres,
  startRedis,
} from 'holdfast-test-servers';
import { Redis } from 'ioredis';
import { makeTable, openDynamodbApart } from './dynamodb-client.js';
import { encoded, post } from './etcd-client.js';
import { askJetstream, openNatsApart } from './nats-client.js';
import { cpuUsOf } from './process-cpu.js';

/** @typedef {{ pid: number, url: () => Promise<string>, version: () => Promise<string>, stop: () => Promise<void> }} Server */

/** @returns {Promise<Server>} */
async function redis() {
  const server = await startRedis({ own: true });
  const client = new Redis(server.url);
  return {
    pid: server.pid,
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

/** @param {boolean} durable @returns {Promise<Server>} */
async function postgres(durable) {
  const server = await startPostgres({ own: true, version: '15', fsync: durable });
  return {
    pid: server.pid,
    url: () => server.createDatabase(),
    version: async () => server.version.split(' ')[0] ?? 'unknown',
    stop: () => server.stop(),
  };
}

/** @param {boolean} durable @returns {Promise<Server>} */
async function mysql(durable) {
  const server = await startMariadb({ own: true, fsync: durable });
  return {
    pid: server.pid,
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
    pid: server.pid,
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
 * The emulator is a Java program, slow until it has run for a while: whoever comes first would pay for that. All kinds of
 * calls that the contenders make, with conditions that hold and that fail.
 * @param {string} url @param {import('@aws-sdk/client-dynamodb').DynamoDB} client
 */
async function warmUp(url, client) {
  const TableName = 'warm-up';
  await makeTable(url, TableName);
  const names = { ExpressionAttributeNames: { '#key': 'key' } };
  const until = performance.now() + WARM_UP_MS;
  const loop = async (/** @type {string} */ key) => {
    const Key = { key: { S: key } };
    const put = { TableName, Item: Key, ConditionExpression: 'attribute_not_exists(#key)', ...names };
    while (performance.now() < until) {
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
    }
  };
  await Promise.all(Array.from({ length: 8 }, (_, index) => loop(`warm:${index}`)));
}

/** @returns {Promise<Server>} */
async function nats() {
  const server = await startNats({ own: true });
  const connection = await openNatsApart(server.url);
  return {
    pid: server.pid,
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
    pid: server.pid,
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
  ...{ redis, postgres, mysql, dynamodb, nats, etcd },
  ...{ 'redis-served': redis, 'postgres-served': postgres },
};

/** @param {import('./types.d.ts').EngineName} engine @returns {engine is keyof typeof START} */
function isServer(engine) {
  return engine in START;
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
    return server && cpuUsOf(server.pid);
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
