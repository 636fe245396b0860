/** A mixed fleet over a bad network: half of it speaks HTTP, half of it PostgreSQL's protocol, all want one key. */
import { postgresStore } from 'holdfast/postgres';
import { supabaseStore } from 'holdfast/supabase';
import { available } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { expectExclusion } from '../faults/bad-network.js';
import { openScene, type Scene } from './scene.js';

describe.runIf(available('postgres') && available('postgrest'))('a mixed fleet over faulty stores', () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene();
  });
  afterAll(() => scene?.stop());

  const seed = Number(process.env.HOLDFAST_SEED ?? Math.floor(Math.random() * 1_000_000));

  it(`F4, F5, F7, F27: stays exclusive, with rising tokens, and leaves nothing (HOLDFAST_SEED=${seed})`, async () => {
    const overHttp = () => supabaseStore(scene.client('service_role'));
    const stores = [overHttp(), postgresStore(scene.pool), overHttp(), postgresStore(scene.pool)];
    const looking = overHttp();
    const key = `faulty-${seed}`;
    await expectExclusion({ stores, key, seed, runMs: 5_000, ttlMs: [300, 900] }, looking);
    await looking.close();
  }, 90_000);
});
