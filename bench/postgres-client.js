/**
 * The client that every PostgreSQL contender gets: pg, at most ten connections. Statements have no names, as everywhere
 * in this client unless told: Holdfast and the query builders give none either. Round trips are
 * counted where the client sends: a query with its parameters is one.
 */
import pg from 'pg';

const CONNECTIONS = 10;

let roundTrips = 0;
/** @type {WeakSet<pg.ClientBase>} */
const uncounted = new WeakSet();

const { query } = pg.Client.prototype;
Object.assign(pg.Client.prototype, {
  /** @this {pg.ClientBase} @param {unknown[]} given */
  query(...given) {
    if (!uncounted.has(this)) roundTrips += 1;
    return Reflect.apply(query, this, given);
  },
});

/** @param {string} url */
export function openPool(url) {
  return new pg.Pool({ connectionString: url, max: CONNECTIONS });
}

/** For the holder whom the waiters stand against: what it asks is not theirs. @param {string} url */
export function openPoolApart(url) {
  const pool = openPool(url);
  pool.on('connect', (client) => uncounted.add(client));
  return pool;
}

export function postgresRoundTrips() {
  return roundTrips;
}
