/** MySQL as the store's tests need it: pools of both drivers that end with the scene, and a look at the table. */

import { WAITERS_MAX } from 'holdfast/compare-and-swap';
import { createTable, type MysqlClient } from 'holdfast/mysql';
import type { Store } from 'holdfast/protocol';
import type { Harness } from 'holdfast/testkit';
import mariadb, { type PoolConfig as MariadbConfig, type Pool as MariadbPool } from 'mariadb';
import { createPool as createCallbackPool } from 'mysql2';
import mysql from 'mysql2/promise';
import { atTheEnd } from '../scene.js';

export { claimOf, releaseOf, renewOf, runSuite, say } from '../store-talk.js';

const CONNECTIONS = 4;

/** Options of both drivers, from a URL. */
function optionsOf(url: string): {
  host: string;
  port: number;
  user: string;
  database: string;
  connectionLimit: number;
} {
  const { hostname, port, username, pathname } = new URL(url);
  return {
    host: hostname,
    port: Number(port),
    user: username,
    database: pathname.slice(1),
    connectionLimit: CONNECTIONS,
  };
}

export function mysql2Pool(url: string, more: mysql.PoolOptions = {}): mysql.Pool {
  const pool = mysql.createPool({ ...optionsOf(url), ...more });
  atTheEnd(() => pool.end());
  return pool;
}

export async function mysql2Connection(url: string): Promise<mysql.Connection> {
  const { connectionLimit: _, ...options } = optionsOf(url);
  const connection = await mysql.createConnection(options);
  atTheEnd(() => connection.destroy());
  return connection;
}

export function callbackPool(url: string): MysqlClient {
  const pool = createCallbackPool(optionsOf(url));
  atTheEnd(() => pool.promise().end());
  return pool;
}

export function mariadbPool(url: string, more: MariadbConfig = {}): MariadbPool {
  const pool = mariadb.createPool({ ...optionsOf(url), ...more });
  atTheEnd(() => pool.end());
  return pool;
}

export async function tableIn(url: string): Promise<void> {
  const { connectionLimit: _, ...options } = optionsOf(url);
  const connection = await mysql.createConnection(options);
  try {
    await createTable(connection);
  } finally {
    await connection.end();
  }
}

export function harnessOf(name: string, open: () => Store, plain: () => mysql.Pool): Harness {
  return {
    name,
    // The error of the estimate on both sides, and what a busy machine adds to a round trip.
    doubtMs: 60,
    lineMax: WAITERS_MAX,
    open: async () => open(),
    async forget(key) {
      await plain().execute('DELETE FROM holdfast WHERE lock_key = ?', [Buffer.from(key)]);
    },
    async spoil(key) {
      const text =
        'INSERT INTO holdfast VALUES (?, ?, ?, 9e15) ON DUPLICATE KEY UPDATE state = ?, version = ?';
      const state = JSON.stringify({ version: 99, anything: 'else' });
      await plain().execute(text, [Buffer.from(key), 'spoilt', state, state, 'spoilt']);
    },
  };
}
