/** Holds that can be guessed, because they are made from names: nobody renews, releases or gets a lock by one. */
import type { Store } from 'holdfast';
import { memoryStore } from 'holdfast/memory';
import { migrate, postgresStore } from 'holdfast/postgres';
import { lockServiceCentral } from 'holdfast/postgres/layouts';
import { available, startPostgres } from 'holdfast-test-servers';
import pg from 'pg';
import { afterEach, describe, expect, it } from 'vitest';
import { createAuth } from '../../src/auth/index.js';
import { atTheEnd, clearScene, type Stage, stage } from '../scene.js';
import { bearer, keyFile } from './issuer.js';

afterEach(clearScene);

const KEY = 'billing/run';
const CLAIM = {
  owner: 'm',
  permits: 1,
  capacity: 1,
  ttlMs: 30_000,
  queue: false,
  inbox: null,
  metadata: null,
};
const COMMANDS = [
  { kind: 'claim', ...CLAIM },
  { kind: 'renew', ttlMs: 60_000, block: false },
  { kind: 'release', minHoldMs: 0 },
];

interface Scene extends Stage {
  /** Statuses of every route that takes a hold, as a principal that may lock and as an admin. */
  trials(process: string, number: number): Promise<readonly number[]>;
}

async function begin(store: Store): Promise<Scene> {
  const { path, keys } = await keyFile({ mallory: ['lock:billing'], root: ['admin:*'] });
  const scene = await stage({ store, auth: createAuth({ apiKeys: path }) });
  const trials = async (process: string, number: number): Promise<readonly number[]> => {
    const statuses: number[] = [];
    for (const headers of [bearer(keys.mallory), bearer(keys.root)]) {
      for (const command of COMMANDS) {
        const commands = [{ key: KEY, hold: { process, number }, ...command }];
        statuses.push((await scene.post('/v2/batch', { commands }, headers)).status);
      }
      for (const [verb, more] of [
        ['acquire', { ttl: '30s' }],
        ['renew', { ttl: '60s' }],
        ['release', {}],
      ] as const) {
        const body = { hold: `${process}.${number}`, ...more };
        statuses.push((await scene.post(`/v2/locks/${KEY}/${verb}`, body, headers)).status);
      }
    }
    return statuses;
  };
  return { ...scene, trials };
}

const REFUSED = Array<number>(12).fill(400);

async function database(): Promise<pg.Pool> {
  const server = await startPostgres();
  const pool = new pg.Pool({ connectionString: await server.createDatabase() });
  pool.on('error', () => undefined);
  atTheEnd(() => server.stop());
  atTheEnd(() => pool.end());
  return pool;
}

describe('a hold that a client sends', () => {
  it('has letters, digits, _, ~ or -, and a number above 0, in a batch as in every other route', async () => {
    const { trials } = await begin(memoryStore());
    for (const [process, number] of [
      ['sql:psql:alice', 1],
      ['foreign:', 0],
      ['any-process', 0],
      ['with space', 1],
      ['with.dot', 1],
      ['a'.repeat(84), 1],
    ] as const) {
      expect([process, await trials(process, number)]).toEqual([process, REFUSED]);
    }
    expect(await trials('a_random-process', 1)).not.toContain(400);
  });

  it.runIf(available('postgres'))('cannot be that of a lock from plain SQL', async () => {
    const pool = await database();
    await migrate(pool);
    const ask = async (text: string): Promise<unknown> => (await pool.query(text)).rows;
    await ask("SELECT holdfast.acquire_lock('run', 'psql:alice', 60, '{}', 'billing')");
    const record = 'SELECT * FROM holdfast.locks';
    const before = await ask(record);
    const { trials } = await begin(postgresStore(pool));
    expect(await trials('sql:psql:alice', 1)).toEqual(REFUSED);
    expect(await ask(record)).toEqual(before);
  });

  it.runIf(available('postgres'))('cannot be that of a lock of other software', async () => {
    const pool = await database();
    await migrate(pool, { layout: lockServiceCentral });
    const expiry = Math.floor(Date.now() / 1_000) + 600;
    await pool.query(
      `INSERT INTO locks VALUES ('billing:run', 'billing', 'run', 'theirs', 'x', 60, ${expiry})`,
    );
    const record = async (): Promise<unknown> => (await pool.query('SELECT * FROM locks')).rows;
    const before = await record();
    const { trials } = await begin(postgresStore(pool, { layout: lockServiceCentral }));
    for (const process of ['foreign:', 'foreign']) expect(await trials(process, 0)).toEqual(REFUSED);
    // A usable text, but of nobody's hold: busy or lost, and never granted.
    expect(new Set(await trials('foreign', 1))).toEqual(new Set([200, 423, 409]));
    expect(await record()).toEqual(before);
  });
});
