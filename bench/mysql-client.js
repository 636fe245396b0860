/**
 * The client that every MySQL contender gets: mysql2, at most ten connections. Round trips are counted where a
 * connection sends: a statement with its parameters is one. Statements are prepared once per connection.
 */
import { createPool } from 'mysql2/promise';

const CONNECTIONS = 10;

let roundTrips = 0;

/** @typedef {{ query: (...given: never[]) => unknown, execute: (...given: never[]) => unknown }} Countable */

/** @param {Countable} connection */
export function counted(connection) {
  for (const method of /** @type {const} */ (['query', 'execute'])) {
    const sent = connection[method];
    connection[method] = (...given) => {
      roundTrips += 1;
      return Reflect.apply(sent, connection, given);
    };
  }
}

/** @param {string} url */
export function openPool(url) {
  const pool = openPoolApart(url);
  pool.on('connection', (connection) =>
    counted(/** @type {Countable} */ (/** @type {unknown} */ (connection))),
  );
  return pool;
}

/** For the holder whom the waiters stand against: what it asks is not theirs. @param {string} url */
export function openPoolApart(url) {
  return createPool({ uri: url, connectionLimit: CONNECTIONS });
}

export function mysqlRoundTrips() {
  return roundTrips;
}
