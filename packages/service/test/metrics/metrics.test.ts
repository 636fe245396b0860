import { memoryStore } from 'holdfast/memory';
import { afterEach, describe, expect, it } from 'vitest';
import { clearScene, open, stage, until } from '../scene.js';
import { fill, withNewer } from '../v2/full-store.js';

afterEach(clearScene);

/** The value of a series, by its name and labels as they are printed. */
function seriesIn(text: string, series: string): number | undefined {
  const line = text.split('\n').find((each) => each.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
}

describe('/metrics', () => {
  it('counts grants, contention, ends and losses, and names no key', async () => {
    const { post, get, acquire } = await stage();
    const { hold } = await acquire('billing/customer-4711');
    expect((await post('/v2/locks/billing/customer-4711/acquire', { ttl: '30s' })).status).toBe(423);
    await post('/v2/locks/billing/customer-4711/release', { hold });
    const lost = await acquire('billing/customer-4712');
    await post('/v2/locks/billing/customer-4712/evict', {});
    const renewal = { hold: lost.hold, ttl: '30s' };
    expect((await post('/v2/locks/billing/customer-4712/renew', renewal)).status).toBe(409);
    // A hold that has ended already is not lost again, and one that was never granted is not lost at all.
    expect((await post('/v2/locks/billing/customer-4712/renew', renewal)).status).toBe(409);
    expect((await post('/v2/locks/billing/customer-4711/renew', { hold, ttl: '30s' })).status).toBe(409);
    expect((await post('/v2/locks/billing/other/renew', { hold: 'stranger.1', ttl: '30s' })).status).toBe(
      409,
    );
    await acquire('billing/customer-4712');
    const { status, headers, text } = await get('/metrics');
    expect(status).toBe(200);
    expect(headers.get('content-type')).toContain('text/plain');
    expect(seriesIn(text, 'holdfast_acquire_wait_seconds_count{outcome="granted"}')).toBe(3);
    expect(seriesIn(text, 'holdfast_acquire_wait_seconds_count{outcome="refused"}')).toBe(1);
    expect(seriesIn(text, 'holdfast_contended_total')).toBe(1);
    expect(seriesIn(text, 'holdfast_released_total{held="true"}')).toBe(1);
    expect(seriesIn(text, 'holdfast_lost_total')).toBe(1);
    expect(seriesIn(text, 'holdfast_held')).toBe(1);
    expect(text).toContain('holdfast_store_seconds_bucket');
    expect(text).toContain('route="/v2/locks/:namespace/:name/acquire"');
    expect(text).not.toContain('customer');
    expect(text).not.toContain(hold);
  });

  it('counts holders and waiters, however many of them are at one lock', async () => {
    const { get, acquire, url } = await stage();
    await acquire('jobs/pool', { permits: 1, capacity: 2 });
    await acquire('jobs/pool', { permits: 1, capacity: 2 });
    const { leave } = open(url, '/v2/locks/jobs/pool/acquire', { ttl: '30s', wait: '30s', capacity: 2 });
    await until(async () => ((await get('/v2/locks/jobs/pool')).body.waiting as number) > 0, 'one waits');
    const { text } = await get('/metrics');
    expect(seriesIn(text, 'holdfast_held')).toBe(2);
    expect(seriesIn(text, 'holdfast_waiting')).toBe(1);
    expect(seriesIn(text, 'holdfast_waiting_here')).toBe(1);
    expect(seriesIn(text, 'holdfast_hold_age_seconds_count')).toBe(2);
    leave();
  });

  it('counts the holders around a record of a newer format', async () => {
    const store = withNewer(memoryStore(), 'a/newer');
    const { get } = await stage({ store });
    await fill(store, [{ key: 'a/a' }, { key: 'a/newer' }, { key: 'a/z' }]);
    expect(seriesIn((await get('/metrics')).text, 'holdfast_held')).toBe(2);
  });

  it('counts acquires, releases and losses of a library like those of others', async () => {
    const { get, post } = await stage();
    const send = async (process: string, command: object) => {
      const { body } = await post('/v2/batch', {
        commands: [{ key: 'a/b', hold: { process, number: 1 }, ...command }],
      });
      return (body.replies as readonly { readonly kind: string }[])[0]?.kind;
    };
    const shape = { owner: 'ada', permits: 1, capacity: 1, ttlMs: 30_000, inbox: null, metadata: null };
    const claim = { kind: 'claim', ...shape, queue: false };
    const waiting = { kind: 'claim', ...shape, queue: true };
    const renew = { kind: 'renew', ttlMs: 30_000, block: false };
    const release = { kind: 'release', minHoldMs: 0 };
    expect(await send('ada', claim)).toBe('granted');
    // Sent again after a lost reply.
    expect(await send('ada', claim)).toBe('granted');
    expect(await send('bob', claim)).toBe('busy');
    // A waiter asks again and again.
    expect(await send('eve', waiting)).toBe('busy');
    expect(await send('eve', waiting)).toBe('busy');
    expect(await send('stranger', renew)).toBe('lost');
    expect(await send('bob', release)).toBe('released');
    expect(await send('ada', release)).toBe('released');
    expect(await send('eve', waiting)).toBe('granted');
    await post('/v2/locks/a/b/evict', {});
    expect(await send('eve', renew)).toBe('lost');
    const { text } = await get('/metrics');
    expect(seriesIn(text, 'holdfast_acquire_wait_seconds_count{outcome="granted"}')).toBe(2);
    expect(seriesIn(text, 'holdfast_acquire_wait_seconds_count{outcome="refused"}')).toBe(1);
    expect(seriesIn(text, 'holdfast_contended_total')).toBe(2);
    expect(seriesIn(text, 'holdfast_released_total{held="true"}')).toBe(1);
    expect(seriesIn(text, 'holdfast_released_total{held="false"}')).toBeUndefined();
    expect(seriesIn(text, 'holdfast_lost_total')).toBe(1);
  });

  it('two services in one process count apart', async () => {
    const [first, second] = [await stage(), await stage()];
    await first.acquire('a/b');
    const { text } = await second.get('/metrics');
    expect(seriesIn(text, 'holdfast_acquire_wait_seconds_count{outcome="granted"}')).toBe(0);
  });
});

describe('health', () => {
  it('is alive and ready while the store answers, and alive but not ready while it does not', async () => {
    const store = memoryStore();
    const { get } = await stage({ store });
    expect((await get('/healthz')).status).toBe(200);
    expect((await get('/readyz')).body).toEqual({ status: 'ready' });
    await store.close();
    const broken = { ...store, read: () => Promise.reject(new Error('connect ECONNREFUSED db.internal')) };
    const other = await stage({ store: broken });
    const { status, text } = await other.get('/readyz');
    expect(status).toBe(503);
    expect(text).not.toContain('db.internal');
    expect(other.lines.join('')).toContain('db.internal');
    expect((await other.get('/healthz')).status).toBe(200);
  });
});
