/**
 * The servers that a run needs: one of each engine for all contenders, private, started when the first run asks for it.
 * Each run finds it empty: Redis is flushed, in PostgreSQL it gets a database of its own. PostgreSQL syncs every commit
 * to the disk, as it does unless told otherwise; only where nobody looks at the figures it is spared that.
 */
import { startPostgres, startRedis } from 'holdfast-servers';
import { Redis } from 'ioredis';

/** @typedef {{ url: () => Promise<string>, version: () => Promise<string>, stop: () => Promise<void> }} Server */

/** @returns {Promise<Server>} */
async function redis() {
  const server = await startRedis({ own: true });
  const client = new Redis(server.url);
  return {
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
    url: () => server.createDatabase(),
    version: async () => server.version.split(' ')[0] ?? 'unknown',
    stop: () => server.stop(),
  };
}

const START = { redis, postgres };

export class Servers {
  /** @type {Map<import('./types.d.ts').EngineName, Promise<Server>>} */
  #started = new Map();
  #durable;

  /** @param {{ durable: boolean }} options */
  constructor({ durable }) {
    this.#durable = durable;
  }

  /** Where a run of this engine goes; empty where the engine has no server. @param {import('./types.d.ts').EngineName} engine */
  async urlFor(engine) {
    if (engine !== 'redis' && engine !== 'postgres') return '';
    const server = this.#started.get(engine) ?? START[engine](this.#durable);
    this.#started.set(engine, server);
    return (await server).url();
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
