/** A fleet on a table of a PostgreSQL database: opened, tested by the cases that every layout passes, and closed. */
import { migrate, type PostgresLayout, type PostgresStoreOptions, postgresStore } from 'holdfast/postgres';
import type { Store } from 'holdfast/protocol';
import { type PostgresServer, startPostgres } from 'holdfast-test-servers';
import pg from 'pg';
import { afterAll, beforeAll } from 'vitest';
import { exclusionCases } from './cases-exclusion.js';
import { plainCases } from './cases-plain.js';
import { processCases } from './cases-process.js';
import { raceCase } from './cases-race.js';
import { closeLocks, type Fleet } from './fleet.js';
import type { Foreign, MachineClock } from './foreign.js';

/** `now()` of a session with another clock: the functions and statements of the other software find this one first. */
const SHIFTED = `
CREATE SCHEMA shifted;
CREATE FUNCTION shifted.now() RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT pg_catalog.now() + current_setting('test.shift_ms')::float8 * interval '1 millisecond' $$`;

export interface Software {
  readonly layout: PostgresLayout;
  /** What the other software has in its database. */
  schema(): Promise<string> | string;
  readonly table: string;
  readonly keyColumn: string;
  nameOf(name: string): string;
  foreign(pool: pg.Pool, clock?: MachineClock): Foreign;
  /** The server's clock, as this software sees it, differs from ours only from so many milliseconds on. */
  readonly shiftMsMin: number;
  readonly clocksApartMs: number;
  readonly afterForeignMs: number;
  readonly afterOursMs: number;
}

export class PostgresFleet implements Fleet {
  server!: PostgresServer;
  pool!: pg.Pool;
  url!: string;
  databaseUrl!: string;
  readonly layout: PostgresLayout;
  readonly clocksApartMs: number;
  readonly afterForeignMs: number;
  readonly afterOursMs: number;
  readonly #software: Software;
  readonly #pools: pg.Pool[] = [];

  constructor(software: Software) {
    this.#software = software;
    const { layout, clocksApartMs, afterForeignMs, afterOursMs } = software;
    this.layout = layout;
    this.clocksApartMs = clocksApartMs;
    this.afterForeignMs = afterForeignMs;
    this.afterOursMs = afterOursMs;
  }

  async open(): Promise<void> {
    this.server = await startPostgres({ own: true });
    this.databaseUrl = await this.server.createDatabase();
    this.url = `${this.databaseUrl}?layout=${this.layout.name}`;
    this.pool = this.openPool();
    await this.pool.query(SHIFTED);
    await this.pool.query(await this.#software.schema());
    await migrate(this.pool, { layout: this.layout });
  }

  async close(): Promise<void> {
    await closeLocks();
    await Promise.all(this.#pools.map((pool) => pool.end()));
    await this.server.stop();
  }

  openPool(options: pg.PoolConfig = {}): pg.Pool {
    const pool = new pg.Pool({ connectionString: this.databaseUrl, max: 5, ...options });
    pool.on('error', () => undefined);
    this.#pools.push(pool);
    return pool;
  }

  store(options: PostgresStoreOptions = {}): Store {
    return postgresStore(this.pool, { layout: this.layout, ...options });
  }

  foreign(clock?: MachineClock): Foreign {
    const shiftMs = clock ? Math.round(clock() - Date.now()) : 0;
    const isShifted = Math.abs(shiftMs) >= this.#software.shiftMsMin;
    const options = `-c search_path=shifted,public,pg_catalog -c test.shift_ms=${shiftMs}`;
    return this.#software.foreign(isShifted ? this.openPool({ options, max: 1 }) : this.pool, clock);
  }

  async record(name: string): Promise<Record<string, unknown> | null> {
    const { table, keyColumn, nameOf } = this.#software;
    const { rows } = await this.pool.query(`SELECT * FROM ${table} WHERE ${keyColumn} = $1`, [nameOf(name)]);
    return rows[0] ?? null;
  }

  /** Sets columns of the row, as somebody could by hand. */
  async change(name: string, set: string): Promise<void> {
    const { table, keyColumn, nameOf } = this.#software;
    await this.pool.query(`UPDATE ${table} SET ${set} WHERE ${keyColumn} = $1`, [nameOf(name)]);
  }

  async forget(name: string): Promise<void> {
    const { table, keyColumn, nameOf } = this.#software;
    await this.pool.query(`DELETE FROM ${table} WHERE ${keyColumn} = $1`, [nameOf(name)]);
  }
}

/** A fleet that is open while the tests of a `describe` run. */
export function openFleet(software: Software): PostgresFleet {
  const fleet = new PostgresFleet(software);
  beforeAll(() => fleet.open());
  afterAll(() => fleet.close());
  return fleet;
}

/** The cases that every layout passes. */
export function fleetCases(fleet: PostgresFleet): void {
  // The longest first: they run side by side.
  processCases(() => fleet);
  exclusionCases(() => fleet, { heartbeats: 3 });
  plainCases(() => fleet);
  raceCase(() => fleet);
}
