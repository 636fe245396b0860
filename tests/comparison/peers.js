// @ts-check
/**
 * Lock libraries behind one interface, each used as its own documents show it, so that the same things can be done to
 * all of them. Used by this process and by contender.js.
 */
import { Verrou } from '@verrou/core';
import { redisStore as verrouStore } from '@verrou/core/drivers/redis';
import { createLocks, LeaseLostError } from 'holdfast';
import { migrate, postgresStore } from 'holdfast/postgres';
import { redisStore } from 'holdfast/redis';
import { sqliteStore } from 'holdfast/sqlite';
import { Redis } from 'ioredis';
import pg from 'pg';
import lockfile from 'proper-lockfile';
import { Mutex } from 'redis-semaphore';
import Redlock from 'redlock';
import Redlock5 from 'redlock-5';

/**
 * @typedef {object} Held
 * @property {() => boolean | null} isHeld what the library says at this very moment; null when it cannot say
 * @property {() => boolean} wasLost whether the library has told of a loss
 * @property {() => Promise<unknown>} release
 *
 * @typedef {object} Session
 * @property {(key: string, ttlMs: number) => Promise<Held>} acquire waits for as long as it takes
 * @property {() => Promise<unknown>} close
 *
 * @typedef {'redis' | 'postgres' | 'file'} Engine
 * @typedef {{ engine: Engine, open: (place: string) => Promise<Session> }} Peer
 */

const FOREVER_MS = 60_000;

/** @param {string} url */
async function redisAt(url) {
  const client = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 1 });
  // Each library hears of it by its own call.
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

/** @param {import('holdfast/protocol').Store} store @param {() => Promise<unknown>} end @returns {Session} */
function holdfastOn(store, end) {
  const locks = createLocks(store);
  return {
    async acquire(key, ttlMs) {
      const lease = await locks.acquire(key, { ttl: ttlMs, wait: FOREVER_MS });
      return {
        isHeld: () => lease.held,
        wasLost: () => lease.signal.reason instanceof LeaseLostError,
        release: () => lease.release(),
      };
    },
    async close() {
      await locks.close({ drain: 0 });
      await end();
    },
  };
}

/** @type {Readonly<Record<string, Peer>>} */
export const PEERS = {
  'Holdfast on Redis': {
    engine: 'redis',
    async open(url) {
      const client = await redisAt(url);
      return holdfastOn(redisStore(client), async () => client.disconnect());
    },
  },
  'Holdfast on PostgreSQL': {
    engine: 'postgres',
    async open(url) {
      const pool = new pg.Pool({ connectionString: url });
      pool.on('error', () => undefined);
      await migrate(pool);
      return holdfastOn(postgresStore(pool), () => pool.end());
    },
  },
  'Holdfast on SQLite': {
    engine: 'file',
    open: async (folder) => holdfastOn(sqliteStore(`${folder}/locks.db`), async () => undefined),
  },
  'redlock 4': {
    engine: 'redis',
    async open(url) {
      const client = await redisAt(url);
      const redlock = new Redlock([client], { retryCount: -1 });
      return {
        async acquire(key, ttlMs) {
          const lock = await redlock.lock(key, ttlMs);
          return {
            isHeld: () => lock.expiration > Date.now(),
            wasLost: () => false,
            release: () => lock.unlock(),
          };
        },
        close: async () => client.disconnect(),
      };
    },
  },
  'redlock 5 beta': {
    engine: 'redis',
    async open(url) {
      const client = await redisAt(url);
      const redlock = new Redlock5([client], { retryCount: -1 });
      redlock.on('error', () => undefined);
      return {
        // `using` is the one that extends itself.
        acquire: (key, ttlMs) =>
          new Promise((resolve, reject) => {
            redlock
              .using([key], ttlMs, (signal) => {
                return new Promise((end) => {
                  resolve({
                    isHeld: () => !signal.aborted,
                    wasLost: () => signal.aborted,
                    release: async () => end(undefined),
                  });
                });
              })
              .catch(reject);
          }),
        close: async () => client.disconnect(),
      };
    },
  },
  'redis-semaphore': {
    engine: 'redis',
    async open(url) {
      const client = await redisAt(url);
      return {
        async acquire(key, ttlMs) {
          let lost = false;
          const mutex = new Mutex(client, key, {
            lockTimeout: ttlMs,
            acquireTimeout: FOREVER_MS,
            onLockLost: () => {
              lost = true;
            },
          });
          await mutex.acquire();
          return { isHeld: () => mutex.isAcquired, wasLost: () => lost, release: () => mutex.release() };
        },
        close: async () => client.disconnect(),
      };
    },
  },
  verrou: {
    engine: 'redis',
    async open(url) {
      const client = await redisAt(url);
      const driver = verrouStore({ connection: client });
      const verrou = new Verrou({ default: 'redis', stores: { redis: { driver } } });
      return {
        async acquire(key, ttlMs) {
          const lock = verrou.createLock(key, ttlMs);
          await lock.acquire();
          return {
            isHeld: () => !lock.isExpired(),
            wasLost: () => false,
            release: () => lock.release(),
          };
        },
        close: async () => client.disconnect(),
      };
    },
  },
  pg_advisory_lock: {
    engine: 'postgres',
    async open(url) {
      /** @type {Set<pg.Client>} */
      const sessions = new Set();
      return {
        async acquire(key) {
          const session = new pg.Client({ connectionString: url });
          let lost = false;
          session.on('error', () => {
            lost = true;
          });
          await session.connect();
          sessions.add(session);
          await session.query('SELECT pg_advisory_lock(hashtext($1))', [key]);
          return {
            isHeld: () => (lost ? false : null),
            wasLost: () => lost,
            async release() {
              sessions.delete(session);
              await session.end();
            },
          };
        },
        close: () => Promise.all([...sessions].map((session) => session.end())),
      };
    },
  },
  'proper-lockfile': {
    engine: 'file',
    open: async (folder) => ({
      async acquire(key, ttlMs) {
        let lost = false;
        const release = await lockfile.lock(`${folder}/${key}`, {
          realpath: false,
          stale: ttlMs,
          retries: { forever: true, retries: 1, factor: 1, minTimeout: 100, maxTimeout: 100 },
          onCompromised: () => {
            lost = true;
          },
        });
        return { isHeld: () => (lost ? false : null), wasLost: () => lost, release };
      },
      close: async () => undefined,
    }),
  },
};
