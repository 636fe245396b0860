import { seededRandom } from 'holdfast/testkit';
import { afterEach, expect, it } from 'vitest';
import { Holdings } from '../../src/auth/holdings.js';
import { createAuth } from '../../src/auth/index.js';
import { clearScene, pause, type Stage, stage, until } from '../scene.js';
import { bearer, keyFile } from './issuer.js';

afterEach(clearScene);

const HELD = 12;
const WAITERS = 4;
const seed = Number(process.env.HOLDFAST_SEED ?? Date.now() % 1_000_000);
const random = seededRandom(seed);
const below = (count: number): number => random.between(0, count - 1);
let holds = 0;

type As = Record<string, string>;

/** One of many at once, in whatever way: waiting, leaving, renewing, evicting, giving back or not. */
async function visit({ url, post }: Stage, as: As): Promise<void> {
  const key = `own/${below(6)}`;
  const path = `/v2/locks/${key}`;
  const [process, number] = [`somebodys-secret-${++holds}`, 1];
  const own = below(2) === 0 ? { hold: `${process}.${number}` } : { minHold: below(2) * 40 };
  const body = { ttl: 60 + below(100), wait: below(3) * 40, capacity: 1 + below(2), ...own };
  const signal = AbortSignal.timeout(below(3) === 0 ? below(60) : 20_000);
  const headers = { ...as, 'content-type': 'application/json' };
  const acquired = await fetch(`${url}${path}/acquire`, {
    ...{ method: 'POST', headers, signal },
    body: JSON.stringify(body),
  }).then(
    async (response) => (await response.json()) as { readonly hold?: string },
    () => null,
  );
  const hold = acquired?.hold;
  if (hold !== undefined) {
    if (below(2) === 0) await post(`${path}/renew`, { hold, ttl: 100 }, as);
    if (below(4) === 0) await post(`${path}/evict`, {}, as);
    for (let count = below(3); count > 0; count -= 1) await post(`${path}/release`, { hold }, as);
    return;
  }
  const claim = { kind: 'claim', key, hold: { process: `${process}-batch`, number }, owner: 'o', permits: 1 };
  const rest = { capacity: 1, ttlMs: 80, queue: below(2) === 0, inbox: null, metadata: null };
  const release = { kind: 'release', key, hold: claim.hold, minHoldMs: 0 };
  await post('/v2/batch', { commands: [{ ...claim, ...rest }] }, as);
  await post('/v2/batch', { commands: [release, release] }, as);
}

it(`whatever a principal did, it has all its room again once that is over (HOLDFAST_SEED=${seed})`, async () => {
  const { path, keys } = await keyFile({ ada: ['admin:*'] });
  const limits = { held: HELD, waiters: WAITERS };
  const scene = await stage({ auth: createAuth({ apiKeys: path, limits }) });
  const as = bearer(keys.ada);
  for (let round = 0; round < 15; round += 1) {
    await Promise.all(Array.from({ length: 20 }, () => visit(scene, as)));
  }
  await until(async () => {
    for await (const _ of scene.store.list({ prefix: 'own/', limit: 1 })) return false;
    return true;
  }, 'nothing is held or waited for');
  await pause(500);
  const acquire = (name: number, wait = 0) =>
    scene.post(`/v2/locks/after/${name}/acquire`, { ttl: '30s', wait }, as);
  const statuses = (answers: readonly { readonly status: number }[]): readonly number[] =>
    answers.map(({ status }) => status);
  await acquire(0);
  const waiting = await Promise.all(Array.from({ length: WAITERS }, () => acquire(0, 400)));
  expect(statuses(waiting)).toEqual(Array.from({ length: WAITERS }, () => 423));
  const rest = await Promise.all(Array.from({ length: HELD - 1 }, (_, index) => acquire(index + 1)));
  expect(statuses(rest)).toEqual(rest.map(() => 200));
  expect((await acquire(HELD)).status).toBe(429);
});

it('locks that end by their time are forgotten on the way, and those that are held are not', () => {
  const holdings = new Holdings();
  for (let number = 0; number < 10; number += 1) holdings.keep(`own/${number}`, 'held.1', 600_000);
  for (let number = 0; number < 20_000; number += 1) holdings.keep(`own/${number}`, 'ends.1', 0.000_1);
  expect(holdings.size).toBeLessThan(3_000);
  expect(holdings.has('own/9', 'held.1')).toBe(true);
});
