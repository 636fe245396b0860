/**
 * Stores as their users make them: each client with its usual settings. Shared by the tests and
 * their processes, which load only the client that they use.
 */

/** @typedef {{ connection: { stream: import('node:net').Socket } }} Wired */
/** @typedef {'ioredis' | 'node-redis' | 'quorum' | 'pg' | 'postgres' | 'mysql2' | 'mariadb' | 'dynamodb' | 'firestore' | 'nats' | 'etcd' | 'http'} Driver */

/**
 * @typedef {object} Place
 * @property {string} url
 * @property {string} [listenerUrl] Where the connection for hints goes, if somewhere else.
 */

/**
 * @typedef {object} Connection
 * @property {import('holdfast').Store} store
 * @property {() => Promise<void>} close Ends the client; the store is closed by its locks.
 * @property {() => Promise<void>} abandon Drops the client's connections without a word from the server.
 */

/** Clients complain of every outage; whoever does not listen is crashed by some. The outcomes are what is tested. */
const complaint = () => undefined;

/** @type {Record<Driver, (place: Place) => Promise<Connection>>} */
const CONNECT = {
  async ioredis({ url, listenerUrl }) {
    const { Redis } = await import('ioredis');
    const { redisStore } = await import('holdfast/redis');
    const client = new Redis(url).on('error', complaint);
    const subscriber = listenerUrl === undefined ? undefined : new Redis(listenerUrl).on('error', complaint);
    const store = redisStore(client, subscriber ? { subscriber } : {});
    const close = async () => {
      // Ended while it subscribes again by itself, ioredis leaves a rejection that nobody can take.
      if (subscriber?.status === 'ready') {
        await Promise.race([subscriber.ping().catch(complaint), new Promise((go) => setTimeout(go, 500))]);
      }
      client.disconnect();
      subscriber?.disconnect();
    };
    return { store, close, abandon: close };
  },

  async 'node-redis'({ url, listenerUrl }) {
    const { createClient } = await import('redis');
    const { redisStore } = await import('holdfast/redis');
    const client = await createClient({ url }).on('error', complaint).connect();
    const subscriber =
      listenerUrl === undefined
        ? undefined
        : await createClient({ url: listenerUrl }).on('error', complaint).connect();
    const store = redisStore(client, subscriber ? { subscriber } : {});
    const close = async () => {
      client.destroy();
      subscriber?.destroy();
    };
    return { store, close, abandon: close };
  },

  // The host names the ports of all servers, so that a proxy before each can take its place: `ports-1-2-3`.
  async quorum({ url }) {
    const { Redis } = await import('ioredis');
    const { quorumStore } = await import('holdfast/quorum');
    const [, ...ports] = new URL(url).hostname.split('-');
    const clients = ports.map((port) => new Redis(Number(port)).on('error', complaint));
    const close = async () => {
      for (const client of clients) client.disconnect();
    };
    return { store: quorumStore(clients), close, abandon: close };
  },

  async pg({ url, listenerUrl }) {
    const { default: pg } = await import('pg');
    const { postgresStore } = await import('holdfast/postgres');
    const layouts = await import('holdfast/postgres/layouts');
    /** @type {Set<import('pg').Client>} */
    const members = new Set();
    class Member extends pg.Client {
      /** @param {import('pg').ClientConfig} config */
      constructor(config) {
        super(config);
        // What the store opens beside the pool is given a copy of the options, and is the store's to end.
        if (config === pool.options) members.add(this);
      }
    }
    const Client = /** @type {new () => import('pg').Client} */ (/** @type {unknown} */ (Member));
    const pool = new pg.Pool({ connectionString: url, Client }).on('error', complaint);
    const listener = () => new pg.Client({ connectionString: listenerUrl });
    // Such a store has no hints.
    const name = new URL(url).searchParams.get('layout');
    const layout = Object.values(layouts).find((one) => one.name === name);
    const own = listenerUrl === undefined ? {} : { listener };
    const store = postgresStore(pool, layout === undefined ? own : { layout });
    const abandon = async () => {
      // So that it opens no others for those who still wait for one.
      void Promise.allSettled([pool.end()]);
      for (const { connection } of /** @type {Iterable<Wired>} */ (/** @type {unknown} */ (members))) {
        connection.stream.destroy();
      }
    };
    return { store, close: () => pool.end(), abandon };
  },

  async postgres({ url, listenerUrl }) {
    const { default: postgres } = await import('postgres');
    const { postgresStore } = await import('holdfast/postgres');
    // As its page says: asked for array types, a connection that is cut meanwhile leaves a rejection that nobody can take.
    const settings = { onnotice: complaint, fetch_types: false };
    const sql = postgres(url, settings);
    const listener = listenerUrl === undefined ? undefined : postgres(listenerUrl, settings);
    const store = postgresStore(sql, listener ? { listener } : {});
    const close = async () => {
      await Promise.all([sql.end({ timeout: 1 }), listener?.end({ timeout: 1 })]);
    };
    // It has no other way: its `end` waits for the server to close the connections.
    const abandon = async () => process.exit();
    return { store, close, abandon };
  },

  async mysql2({ url }) {
    const { createPool } = await import('mysql2/promise');
    const { mysqlStore } = await import('holdfast/mysql');
    const pool = createPool({ uri: url });
    // It cannot end connections that are still being made.
    const abandon = async () => process.exit();
    return { store: mysqlStore(pool), close: () => pool.end(), abandon };
  },

  async mariadb({ url }) {
    const { createPool } = await import('mariadb');
    const { mysqlStore } = await import('holdfast/mysql');
    const { hostname: host, port, username: user, pathname } = new URL(url);
    const pool = createPool({ host, port: Number(port), user, database: pathname.slice(1) });
    // Its `end` waits for the server to answer.
    const abandon = async () => process.exit();
    return { store: mysqlStore(pool), close: () => pool.end(), abandon };
  },

  // The table is the URL's path.
  async dynamodb({ url }) {
    const { DynamoDB } = await import('@aws-sdk/client-dynamodb');
    const { dynamodbStore } = await import('holdfast/dynamodb');
    const { origin, pathname } = new URL(url);
    const credentials = { accessKeyId: 'holdfast', secretAccessKey: 'holdfast' };
    const client = new DynamoDB({ endpoint: origin, region: 'eu-central-1', credentials });
    const store = dynamodbStore(client, { table: pathname.slice(1) });
    const close = async () => client.destroy();
    return { store, close, abandon: close };
  },

  // The collection is the URL's path. Opened by URL: a client with its usual settings retries for ten minutes, and ends only then.
  async firestore({ url }) {
    const { openStore } = await import('holdfast');
    const { host, pathname } = new URL(url);
    const store = await openStore(`firestore://holdfast${pathname}?emulator=${host}`);
    return { store, close: async () => undefined, abandon: async () => undefined };
  },

  // The bucket is the URL's path; further servers, and how many keep the bucket, are told behind it.
  async nats({ url }) {
    const { connect } = await import('@nats-io/transport-node');
    const { natsStore } = await import('holdfast/nats');
    const { host, pathname, searchParams } = new URL(url);
    const connection = await connect({
      servers: [host, ...searchParams.getAll('server')],
      maxReconnectAttempts: -1,
      reconnectTimeWait: 250,
      // For how long it waits for a greeting that does not come; 20 s unless told.
      timeout: 3_000,
      // Those that it hears of would be ways past a proxy.
      ignoreClusterUpdates: true,
      noRandomize: true,
    });
    const replicas = Number(searchParams.get('replicas') ?? 1);
    const store = natsStore(connection, { bucket: pathname.slice(1), replicas });
    const close = () => connection.close();
    return { store, close, abandon: close };
  },

  // The prefix is the URL's path; further endpoints are told behind it.
  async etcd({ url, listenerUrl }) {
    const { etcdClient, etcdStore } = await import('holdfast/etcd');
    const { origin, pathname, searchParams } = new URL(url);
    const hints = listenerUrl === undefined ? undefined : new URL(listenerUrl).origin;
    /** @type {import('holdfast/etcd').FetchLike} */
    const split = (where, request) =>
      fetch(hints !== undefined && where.endsWith('/v3/watch') ? `${hints}/v3/watch` : where, request);
    const client = etcdClient({ endpoints: [origin, ...searchParams.getAll('endpoint')], fetch: split });
    const store = etcdStore(client, { prefix: `${pathname.slice(1)}/` });
    return { store, close: async () => undefined, abandon: async () => undefined };
  },

  async http({ url, listenerUrl }) {
    const { httpStore } = await import('holdfast/http');
    /** @type {import('holdfast/http').FetchLike} */
    const split = (where, request) =>
      fetch(
        listenerUrl !== undefined && where.endsWith('/events')
          ? listenerUrl + where.slice(url.length)
          : where,
        request,
      );
    const store = httpStore({ url, fetch: split });
    // Closing the store is all there is to end.
    return { store, close: async () => undefined, abandon: async () => undefined };
  },
};

/**
 * @param {Driver} driver
 * @param {Place} place
 * @returns {Promise<Connection>}
 */
export function connect(driver, place) {
  return CONNECT[driver](place);
}
