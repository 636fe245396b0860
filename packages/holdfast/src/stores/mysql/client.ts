/**
 * The clients that are accepted, typed by the few methods that are used.
 *
 * Pools of mysql2 are used by their callbacks. Its promises keep the stack of each caller, and make an object of the
 * connection at each use: a tenth of the processor time of a command. A pool of its promise API has the other as `pool`.
 */
import type { Pooled } from './pooled.js';

/** A connection of mysql2 (its promise API) or mariadb, with autocommit, that is not used for transactions. */
export interface MysqlConnection {
  query(options: { readonly sql: string }): Promise<unknown>;
}

/** A pool of mysql2 (its promise API) or mariadb. */
export interface MysqlPool {
  getConnection(): Promise<MysqlConnection>;
}

/** A pool or connection of mysql2 with callbacks. */
export interface MysqlCallbackClient {
  promise(): MysqlPool | MysqlConnection;
}

/** A pool or connection of mysql2 or mariadb, with promises or callbacks. */
export type MysqlClient = MysqlPool | MysqlConnection | MysqlCallbackClient;

type Callback<T> = (error: unknown, value: T) => void;

interface CallbackConnection extends Pooled {
  readonly config?: { readonly queryFormat?: unknown };
  query(options: object, callback: Callback<unknown>): unknown;
  query(sql: string, values: readonly never[] | null, callback: Callback<unknown>): unknown;
}

interface CallbackPool {
  getConnection(callback: Callback<CallbackConnection>): unknown;
}

/** With the promises of this file for a pool of mysql2, and with those of the client for everything else. */
export function promiseClient(given: MysqlClient): MysqlPool | MysqlConnection {
  const { pool } = (given ?? {}) as { readonly pool?: unknown };
  if (isCallbackPool(given)) return promisePool(given);
  if (isCallbackPool(pool)) return promisePool(pool);
  return hasPromise(given) ? given.promise() : given;
}

/** Clients of mysql2 with callbacks have this method, and no others do. */
function hasPromise(client: unknown): client is MysqlCallbackClient {
  return typeof (client as Partial<MysqlCallbackClient> | null | undefined)?.promise === 'function';
}

function isCallbackPool(client: unknown): client is CallbackPool {
  return hasPromise(client) && typeof (client as Partial<CallbackPool>).getConnection === 'function';
}

function promisePool(pool: CallbackPool): MysqlPool {
  const known = new WeakMap<CallbackConnection, MysqlConnection & Pooled>();
  return {
    getConnection: () =>
      new Promise((resolve, reject) => {
        pool.getConnection((error, connection) => {
          if (error) return reject(error);
          const usable = known.get(connection) ?? promiseConnection(connection);
          known.set(connection, usable);
          resolve(usable);
        });
      }),
  };
}

function promiseConnection(connection: CallbackConnection): MysqlConnection & Pooled {
  // Without a list of values the text is not searched for placeholders. A format of the user's may expect a list.
  const values = connection.config?.queryFormat ? [] : null;
  return {
    query: (options) =>
      new Promise((resolve, reject) => {
        const done: Callback<unknown> = (error, result) => {
          if (error) reject(error);
          else resolve(result);
        };
        // Options are copied several times per statement, and a write has none.
        if (hasOptions(options)) connection.query(options, done);
        else connection.query(options.sql, values, done);
      }),
    release: () => connection.release?.(),
    destroy: () => connection.destroy?.(),
  };
}

const hasOptions = (options: object): boolean => 'typeCast' in options;
