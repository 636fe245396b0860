/** Views have addresses, one lock has a page, and the history outlives a reload. */
import { available } from 'holdfast-test-servers';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import {
  clearScene,
  closeBrowser,
  look,
  lookLive,
  names,
  newGuardedScene,
  newScene,
  shows,
  until,
} from './scene.js';

afterEach(clearScene);
afterAll(closeBrowser);

const hash = (page: Page): Promise<string> => page.evaluate('location.hash') as Promise<string>;

async function lists(page: Page, expected: readonly string[]): Promise<void> {
  await until(async () => (await names(page)).join() === expected.join(), `the list is ${expected}`);
}

describe.runIf(available('chromium'))('the address of a view', () => {
  it('has search, namespace and order; it can be pasted, and back and forward go through the views', async () => {
    const scene = await newScene();
    for (const key of ['billing/a', 'billing/b', 'search/a']) await scene.acquire(key);
    const page = await lookLive(scene);
    await lists(page, ['billing/a', 'billing/b', 'search/a']);
    await page.getByLabel('Namespace').selectOption('billing');
    await lists(page, ['billing/a', 'billing/b']);
    await page.getByLabel('Order').selectOption('ends');
    await page.getByRole('searchbox').fill('billing/b');
    await lists(page, ['billing/b']);
    expect(await hash(page)).toBe('#/?namespace=billing&search=billing%2Fb&sort=ends');
    const pasted = await look(scene);
    await pasted.goto(page.url());
    await pasted.reload();
    await lists(pasted, ['billing/b']);
    expect(await pasted.getByLabel('Order').inputValue()).toBe('ends');
    await page.goBack();
    await lists(page, ['billing/a', 'billing/b']);
    await page.goBack();
    await lists(page, ['billing/a', 'billing/b', 'search/a']);
    expect(await page.getByLabel('Namespace').inputValue()).toBe('');
    await page.goForward();
    await lists(page, ['billing/a', 'billing/b']);
  });

  it('leads through pages of many locks', async () => {
    const scene = await newScene();
    await scene.take(450);
    const page = await lookLive(scene, { viewport: { width: 1280, height: 800 } });
    await shows(page, '#more', 'The first 200 of 450.');
    await until(async () => (await names(page)).length === 200, 'all rows of the page are there');
    const isOnScreen = `[...document.querySelectorAll('#locks > li')].filter((row) => row.getBoundingClientRect().bottom <= innerHeight).length`;
    expect(await page.evaluate(isOnScreen)).toBeGreaterThanOrEqual(20);
    await page.getByRole('link', { name: 'Next' }).click();
    await shows(page, '#more', '201 to 400 of 450.');
    expect(await hash(page)).toBe('#/?page=2');
    await page.reload();
    await shows(page, '#more', '201 to 400 of 450.');
    await page.getByRole('link', { name: 'Last' }).click();
    await shows(page, '#more', '401 to 450 of 450.');
    await until(async () => (await names(page)).at(-1) === 'tenth/000440', 'the last lock is shown');
    expect(await page.getByRole('link', { name: 'Next' }).isVisible()).toBe(false);
    await page.getByRole('link', { name: 'First' }).click();
    await shows(page, '#more', 'The first 200 of 450.');
    await until(async () => (await names(page))[0] === 'many/000001', 'the first lock is shown');
  });

  it('outlives the question for an API key', async () => {
    const { scene, reader } = await newGuardedScene();
    await scene.acquire('billing/a', { owner: 'ada' });
    const page = await look(scene);
    await page.goto(`${scene.url}#/lock?key=billing%2Fa`);
    await page.getByLabel('API key', { exact: true }).fill(reader);
    await page.getByRole('button', { name: 'Log in' }).click();
    await shows(page, '#page .holders', 'ada');
    expect(await page.getByRole('button', { name: /^Evict/ }).count()).toBe(0);
    await shows(page, '#page .copied', 'authorization: Bearer $HOLDFAST_API_KEY');
  });
});

describe.runIf(available('chromium'))('the page of a lock', () => {
  it('has holders, waiters in order and the timeline; one holder of several is evicted, with a reason', async () => {
    const scene = await newScene();
    const shared = { permits: 1, capacity: 2 };
    const ada = await scene.acquire('jobs/pool', { owner: 'ada', ...shared });
    const { token } = await scene.acquire('jobs/pool', { owner: 'bob', ...shared });
    await scene.release('jobs/pool', ada);
    await scene.acquire('jobs/pool', { owner: 'cleo', ...shared });
    const page = await lookLive(scene);
    await page.locator('summary').click();
    await page.getByRole('link', { name: 'Timeline and commands' }).click();
    await shows(page, '#page .past', 'ada released');
    expect(await hash(page)).toBe('#/lock?key=jobs%2Fpool');
    await until(async () => (await page.title()) === 'jobs/pool · Holdfast', 'the title is that of the lock');
    for (const owner of ['dan', 'eve']) {
      void scene.post('/v2/locks/jobs/pool/acquire', { ttl: '60s', wait: '60s', owner, ...shared });
      await shows(page, '#page .waiters', owner);
    }
    expect(await page.locator('#page .waiters > li b').allTextContents()).toEqual(['dan', 'eve']);
    await page.getByRole('button', { name: `Evict bob, token ${token}` }).click();
    const dialog = page.getByRole('dialog', { name: 'Evict bob from jobs/pool?' });
    await dialog.getByLabel(/^Reason/).fill('the host is retired');
    await dialog.getByRole('button', { name: 'Evict' }).click();
    await shows(page, '#page .past', 'bob evicted by anonymous: the host is retired');
    await shows(page, '#page .holders', 'dan');
    expect(await page.locator('#page .holders > li p b').allTextContents()).toEqual(['cleo', 'dan']);
    await page.reload();
    await shows(page, '#page .past', 'bob evicted by anonymous: the host is retired');
    await page.goBack();
    await shows(page, '#locks', 'jobs/pool');
  });

  it('has lines for the command line that can be copied, with any name', async () => {
    const scene = await newScene();
    const page = await lookLive(scene, { permissions: ['clipboard-read', 'clipboard-write'] });
    const { token } = await scene.acquire("jobs/it's a ; name", { owner: 'ada' });
    await page.goto(`${scene.url}#/lock?key=${encodeURIComponent("jobs/it's a ; name")}`);
    const at = `--store ${scene.url.slice(0, -1)} --namespace=jobs`;
    const line = `holdfast evict ${at} --token ${token} --reason 'why' 'it'\\''s a ; name'`;
    await page.getByRole('button', { name: `Copy: ${line}` }).click();
    await shows(page, '#toast', 'Copied.');
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(line);
    await shows(page, '#page .copied', `/v2/locks/jobs/it's%20a%20%3B%20name`.replaceAll("'", "'\\''"));
    await page.goto(`${scene.url}#/lock?key=jobs%2F--force`);
    await shows(page, '#page .copied', `holdfast inspect ${at} -- --force`);
  });

  it('of a lock that nobody holds says so, and follows it when it is held', async () => {
    const scene = await newScene();
    const page = await lookLive(scene);
    await page.goto(`${scene.url}#/lock?key=a%2Fb`);
    await shows(page, '.lock-page', 'Nobody holds it at the moment.');
    const held = await scene.acquire('a/b', { owner: 'ada' });
    await shows(page, '#page .holders', 'ada');
    await scene.release('a/b', held);
    await shows(page, '#page .past', 'ada released');
    await shows(page, '.lock-page', 'Nobody holds it at the moment.');
  });
});

describe.runIf(available('chromium'))('the pages of history and service', () => {
  it('the history has counts, histograms, contended keys and how holds ended, and the service that saw it', async () => {
    const scene = await newScene();
    const held = await scene.acquire('jobs/busy', { owner: 'ada' });
    expect((await scene.post('/v2/locks/jobs/busy/acquire', { ttl: '60s' })).status).toBe(423);
    await scene.release('jobs/busy', held);
    await scene.acquire('jobs/gone', { owner: 'bob' });
    await scene.post('/v2/locks/jobs/gone/evict', { reason: 'stuck' });
    const page = await lookLive(scene);
    await page.getByRole('link', { name: 'History' }).click();
    await shows(page, '#page .past', 'jobs/gone bob evicted by anonymous: stuck');
    await shows(page, '#page .past', 'jobs/busy ada released');
    await shows(page, '.keys', 'jobs/busy 1 times');
    await shows(page, '.history-page', `:${process.pid} since`);
    const holds = page.getByRole('table', { name: 'How long locks were held' });
    const counts = await holds.locator('.number').allTextContents();
    expect(counts.reduce((all, count) => all + Number(count), 0)).toBe(2);
    await page.getByRole('link', { name: 'evicted', exact: true }).click();
    await until(
      async () => (await page.locator('#page .past > li').count()) === 1,
      'only evictions are shown',
    );
    expect(await hash(page)).toBe('#/history?ended=evicted');
    await page.getByRole('link', { name: 'jobs/gone' }).last().click();
    await shows(page, '#page .past', 'bob evicted by anonymous: stuck');
  });

  it('the service says which store it is, how fast, what it promises, its version, and where metrics and API are', async () => {
    const scene = await newScene();
    const page = await lookLive(scene);
    await page.getByRole('link', { name: 'Service' }).click();
    await shows(page, '.service-page', 'memory: this process');
    await shows(page, '.findings', 'a restart forgets everything');
    expect(await page.locator('.service-page').textContent()).toMatch(
      /Version\d+\.\d+\.\d+.*Latency[\d.]+ ms/,
    );
    for (const name of ['Metrics', 'API', 'OpenAPI document', 'Readiness']) {
      const target = await page.getByRole('link', { name, exact: true }).getAttribute('href');
      expect([name, (await fetch(new URL(target ?? '?', scene.url))).status]).toEqual([name, 200]);
    }
  });
});

describe.runIf(available('chromium'))('the keyboard', () => {
  it('searches, goes through the rows, opens and closes them, goes back, and explains itself', async () => {
    const scene = await newScene();
    for (const key of ['a/1', 'a/2', 'a/3']) await scene.acquire(key);
    const page = await lookLive(scene);
    await lists(page, ['a/1', 'a/2', 'a/3']);
    const focused = (): Promise<unknown> => page.evaluate('document.activeElement.textContent');
    await page.keyboard.press('/');
    await page.keyboard.type('a/');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    expect(await focused()).toContain('a/2');
    await page.keyboard.press('ArrowUp');
    expect(await focused()).toContain('a/1');
    await page.keyboard.press('Enter');
    await page.locator('.inside:visible').waitFor();
    await page.keyboard.press('Escape');
    await page.locator('.inside:visible').waitFor({ state: 'hidden' });
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor({ state: 'hidden' });
    await page.getByRole('link', { name: 'Service' }).click();
    await shows(page, '.service-page', 'memory');
    await page.keyboard.press('Escape');
    await lists(page, ['a/1', 'a/2', 'a/3']);
    expect(await hash(page)).toBe('#/?search=a%2F');
  });

  it('without any lock, the page says how to take the first one', async () => {
    const scene = await newScene();
    const page = await lookLive(scene);
    await shows(page, '#first', `holdfast run first --store ${scene.url.slice(0, -1)} -- sleep 60`);
    await scene.acquire('a/b');
    await page.locator('#first').waitFor({ state: 'hidden' });
  });
});
