import { memoryStore } from 'holdfast/memory';
import { available } from 'holdfast-test-servers';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { clearScene, closeBrowser, look, lookLive, names, newScene, shows, until } from './scene.js';

afterEach(clearScene);
afterAll(closeBrowser);

describe.runIf(available('chromium'))('the dashboard, live', () => {
  it('says that nothing is held; a lock appears by itself, with holder, token, times and metadata', async () => {
    const scene = await newScene();
    const page = await lookLive(scene);
    await shows(page, '#notice', 'No lock is held');
    const { token } = await scene.acquire('billing/nightly', {
      owner: 'worker-3',
      metadata: { job: 'invoices' },
    });
    await shows(page, '#locks > li', 'billing/nightly');
    expect(await page.locator('#notice').textContent()).toBe('');
    await page.locator('summary').click();
    const inside = page.locator('.inside');
    await shows(page, '.holders', 'worker-3');
    expect(await inside.textContent()).toContain(`Token${token}`);
    expect(await inside.textContent()).toContain('{ "job": "invoices" }');
    expect(await inside.textContent()).toMatch(/Since\d\d:\d\d:\d\d, for \d+ s/);
    expect(await inside.textContent()).toMatch(/Until\d\d:\d\d:\d\d, .*\d s left/);
    await shows(page, '#events', `billing/nightly granted to worker-3, token ${token}`);
    expect(await page.locator('#held').textContent()).toBe('1');
  });

  it('says so when it looks at all locks rarely, as reads of the store cost money', async () => {
    const memory = memoryStore();
    const metered = { ...memory, traits: { ...memory.traits, metered: true } };
    const page = await lookLive(await newScene(metered));
    await shows(page, '#pace', 'Reads of this store cost money: changes by other services, and expiries');
    expect(await page.locator('#pace').textContent()).toContain('are read every 60 s.');
    const free = await lookLive(await newScene());
    expect(await free.locator('#pace').isVisible()).toBe(false);
  });

  it('counts down', async () => {
    const scene = await newScene();
    await scene.acquire('billing/nightly', { ttl: '50s' });
    const page = await lookLive(scene);
    const left = async (): Promise<number> =>
      Number(/(\d+) s left/.exec((await page.locator('summary .left').textContent()) ?? '')?.[1]);
    await until(async () => (await left()) > 0, 'it counts');
    const first = await left();
    await until(async () => (await left()) <= first - 2, 'it counts down');
  });

  it('waiters queue in order; a release moves the head up', async () => {
    const scene = await newScene();
    const page = await lookLive(scene);
    const held = await scene.acquire('billing/nightly');
    await page.locator('summary').click();
    const waiters = page.locator('.waiters > li');
    for (const owner of ['grace', 'mary', 'joan']) {
      void scene.wait('billing/nightly', owner);
      await shows(page, '.waiters', owner);
    }
    const line = async (): Promise<readonly string[]> =>
      (await waiters.locator('b').allTextContents()).filter(Boolean);
    expect(await line()).toEqual(['grace', 'mary', 'joan']);
    expect(await page.locator('#waiting').textContent()).toBe('3');
    await shows(page, 'summary .line', '3 waiting');
    await scene.release('billing/nightly', held);
    await shows(page, '.holders', 'grace');
    await until(async () => (await line()).join() === 'mary,joan', 'the line moved up');
    await shows(page, '#events', 'billing/nightly granted to grace');
    await shows(page, '#events', 'ended for ada');
    // Who was granted did not leave the line of their own accord.
    expect(await page.locator('#events').textContent()).not.toContain('left');
    await until(
      async () => /at most 3/.test((await page.locator('#chart').getAttribute('aria-label')) ?? ''),
      'the chart shows it',
    );
    expect(await page.locator('#chart-waiting').getAttribute('d')).toMatch(/^M[\d.]+ [\d.]+H/);
  });

  it('a lock that is released goes, and so does one that expires; renewals are told when asked for', async () => {
    const scene = await newScene();
    const page = await lookLive(scene);
    const { hold } = await scene.acquire('a/released');
    await scene.acquire('a/short', { ttl: '4s' });
    await until(async () => (await names(page)).length === 2, 'both are there');
    await page.getByLabel('Renewals').check();
    await scene.post('/v2/locks/a/released/renew', { hold, ttl: '90s' });
    await shows(page, '#events', 'a/released renewed by ada');
    await scene.release('a/released', { hold, token: 0 });
    await until(async () => (await names(page)).join() === 'a/short', 'one is gone');
    await until(async () => (await names(page)).length === 0, 'both are gone');
    await shows(page, '#notice', 'No lock is held');
  });

  it('search finds by name, owner, token and metadata, and filters the events too', async () => {
    const scene = await newScene();
    const { token } = await scene.acquire('billing/nightly', {
      owner: 'worker-3',
      metadata: { job: 'Invoices' },
    });
    await scene.acquire('search/reindex', { owner: 'indexer' });
    const page = await lookLive(scene);
    const found = async (search: string, expected: readonly string[]): Promise<void> => {
      await page.getByRole('searchbox').fill(search);
      await until(
        async () => (await names(page)).join() === expected.join(),
        `"${search}" finds ${expected}`,
      );
    };
    await found('NIGHT', ['billing/nightly']);
    await found('indexer', ['search/reindex']);
    await found(String(token), ['billing/nightly']);
    await found('invoices worker', ['billing/nightly']);
    await found('nowhere', []);
    await shows(page, '#notice', 'Nothing matches “nowhere”');
    await scene.acquire('billing/other');
    await scene.acquire('x/nowhere');
    await until(async () => (await names(page)).join() === 'x/nowhere', 'only what matches comes');
    expect(await page.locator('#events > li:visible').count()).toBe(1);
    await found('', ['billing/nightly', 'billing/other', 'search/reindex', 'x/nowhere']);
  });

  it('the most waited for come first when asked, and focus stays where it was', async () => {
    const scene = await newScene();
    await scene.acquire('a/quiet');
    await scene.acquire('b/busy');
    const page = await lookLive(scene);
    await page.getByLabel('Order').selectOption('waiting');
    await page.locator('summary', { hasText: 'b/busy' }).focus();
    void scene.wait('b/busy', 'grace');
    await until(async () => (await names(page)).join() === 'b/busy,a/quiet', 'it moved up');
    expect(await page.evaluate('document.activeElement.textContent')).toContain('b/busy');
  });

  it('of many locks it shows the first two hundred, and says so', async () => {
    const scene = await newScene();
    for (let number = 0; number < 10; number += 1) {
      const claims = Array.from({ length: 30 }, (_, index) => ({
        kind: 'claim',
        key: `many/${number * 30 + index}`,
        hold: { process: `p-${number}-${index}`, number: 1 },
        owner: 'o',
        permits: 1,
        capacity: 1,
        ttlMs: 60_000,
        queue: false,
        inbox: null,
        metadata: null,
      }));
      expect((await scene.post('/v2/batch', { commands: claims })).status).toBe(200);
    }
    const page = await lookLive(scene);
    await shows(page, '#more', 'The first 200 of 300.');
    await until(async () => (await names(page)).length === 200, 'all of them are drawn');
    await page.getByRole('searchbox').fill('many/299');
    await until(async () => (await names(page)).join() === 'many/299', 'search finds the others');
  });
});

describe.runIf(available('chromium'))('the dashboard in trouble', () => {
  it('a lost connection is said; it comes back by itself and shows what became of the locks', async () => {
    const scene = await newScene();
    const held = await scene.acquire('a/before');
    const page = await lookLive(scene);
    await page.locator('summary').click();
    await page.getByRole('button', { name: /^Evict/ }).waitFor();
    await scene.stop();
    await shows(page, '#banner', 'The connection is lost.');
    await shows(page, '#banner', 'State of');
    expect(await names(page)).toEqual(['a/before']);
    // Nothing can be done about what may be out of date.
    expect(await page.getByRole('button', { name: /^Evict/ }).count()).toBe(0);
    await scene.start();
    await scene.release('a/before', held);
    await scene.acquire('b/after');
    await shows(page, '#status', 'Live');
    await until(async () => (await names(page)).join() === 'b/after', 'it shows how things are');
    expect(await page.locator('#banner').isVisible()).toBe(false);
    await shows(page, '#events', 'live again');
    await scene.stop();
    await shows(page, '#status', 'Lost');
    await scene.start();
    await page.getByRole('button', { name: /^Try/ }).click();
    await shows(page, '#status', 'Live');
  });

  it('a store that does not answer is said, also to who comes then, and keeps what was known', async () => {
    const inner = memoryStore();
    let isCut = false;
    const fragile = {
      ...inner,
      list(query: Parameters<typeof inner.list>[0]) {
        if (isCut) throw new Error('The line is cut.');
        return inner.list(query);
      },
    };
    const scene = await newScene(fragile);
    await scene.acquire('a/known');
    const page = await lookLive(scene);
    await until(async () => (await names(page)).length === 1, 'it is known');
    isCut = true;
    await shows(page, '#banner', 'The store does not answer.');
    const late = await look(scene);
    await shows(late, '#banner', 'The store does not answer.');
    expect(await names(page)).toEqual(['a/known']);
    await until(async () => (await names(late)).length === 1, 'the other is shown it too');
    isCut = false;
    for (const one of [page, late]) await shows(one, '#status', 'Live');
    await scene.acquire('b/new');
    for (const one of [page, late]) await until(async () => (await names(one)).length === 2, 'it goes on');
  });

  it('while nothing is known yet it says that it looks', async () => {
    const inner = memoryStore();
    const { promise, open } = gate();
    const slow = {
      ...inner,
      async *list(query: Parameters<typeof inner.list>[0]) {
        await promise;
        yield* inner.list(query);
      },
    };
    const scene = await newScene(slow);
    const page = await look(scene);
    await shows(page, '#notice', 'Reading the locks…');
    await shows(page, '#status', 'Connecting');
    open();
    await shows(page, '#notice', 'No lock is held');
  });
});

function gate(): { readonly promise: Promise<void>; readonly open: () => void } {
  let open = (): void => undefined;
  const promise = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { promise, open: () => open() };
}
