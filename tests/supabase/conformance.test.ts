import { supabaseStore } from 'holdfast/supabase';
import { conformanceSuite, type Harness } from 'holdfast/testkit';
import { available } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { casesOf, sequencesOf } from '../long-run.js';
import { patient } from '../store-talk.js';
import { openScene, type Scene } from './scene.js';

const SEQUENCES = 1_000;
const seed = Number(process.env.HOLDFAST_SEED ?? Math.floor(Math.random() * 2 ** 31));
/** PostgreSQL's word for a row that was not to be had in time. */
const LOCK_TIMEOUT = '55P03';

/** On a crowded machine somebody's transaction may keep a row for longer than the store waits for it: nothing was done. */
function isLockedOut(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === LOCK_TIMEOUT;
}

const title = `Supabase, through PostgREST (HOLDFAST_SEED=${seed})`;

describe.runIf(available('postgres') && available('postgrest'))(title, () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene();
  });
  afterAll(() => scene?.stop());

  const harness: Harness = {
    name: 'Supabase',
    open: async () => patient(supabaseStore(scene.client('service_role')), isLockedOut),
    async forget(key) {
      await scene.pool.query('DELETE FROM holdfast.records WHERE key = $1', [key]);
    },
    async spoil(key) {
      await scene.pool.query('UPDATE holdfast.records SET version = 99 WHERE key = $1', [key]);
    },
  };
  const cases = conformanceSuite(harness, { sequences: sequencesOf(SEQUENCES), seed });
  for (const { name, run } of casesOf(cases)) it(name, run, 600_000);
});
