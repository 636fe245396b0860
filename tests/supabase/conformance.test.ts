import { supabaseStore } from 'holdfast/supabase';
import type { Harness } from 'holdfast/testkit';
import { available } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe } from 'vitest';
import { runSuite } from '../store-talk.js';
import { openScene, type Scene } from './scene.js';

describe.runIf(available('postgres') && available('postgrest'))('Supabase, through PostgREST', () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene();
    // The suite sends each command once: on a busy machine a transaction keeps its row for longer than 200 ms.
    await scene.pool.query("ALTER ROUTINE holdfast.apply SET lock_timeout = '60s'");
  });
  afterAll(() => scene?.stop());

  const harness: Harness = {
    name: 'Supabase',
    open: async () => supabaseStore(scene.client('service_role')),
    async forget(key) {
      await scene.pool.query('DELETE FROM holdfast.records WHERE key = $1', [key]);
    },
    async spoil(key) {
      await scene.pool.query('UPDATE holdfast.records SET version = 99 WHERE key = $1', [key]);
    },
  };
  // The functions are those of PostgreSQL, which passes every case in `npm test`.
  runSuite(harness, 300, { when: 'model' });
});
