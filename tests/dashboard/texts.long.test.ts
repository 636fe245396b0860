/** What locks, owners and metadata say is up to anybody. */
import { available } from 'holdfast-test-servers';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { clearScene, closeBrowser, look, lookLive, names, newScene, shows, until } from './scene.js';

afterEach(clearScene);
afterAll(closeBrowser);

const EVICT = { name: /^Evict who holds/ };

describe.runIf(available('chromium'))('whatever locks are called', () => {
  it('stays text: nothing of it becomes an element, and nothing of it runs', async () => {
    const scene = await newScene();
    const page = await lookLive(scene);
    const evil = '<img src=x onerror="globalThis.owned=1"><script>globalThis.owned=1</script>';
    const key = `evil/${evil}`;
    await scene.acquire(key, { owner: `${evil}&lt;b&gt;`, metadata: { [evil]: `"><svg onload=1>` } });
    void scene.wait(key, `${evil} waits`);
    await shows(page, '.line', '1 waiting');
    expect(await names(page)).toEqual([key]);
    await page.locator('summary').click();
    await shows(page, '.holders', '&lt;b&gt;');
    await page.getByRole('button', EVICT).click();
    await shows(page, '#evict-title', `Evict who holds ${key}?`);
    expect(await page.evaluate('globalThis.owned')).toBeUndefined();
    expect(await page.locator('img').count()).toBe(1);
    expect(await page.locator('script').count()).toBe(1);
    await page.getByRole('dialog').getByRole('button', { name: 'Evict' }).click();
    await shows(page, '#toast', `Evicted from ${key}: 1.`);
  });

  it('letters that hide, or turn the text around them, are shown as their code', async () => {
    const scene = await newScene();
    const page = await lookLive(scene);
    const key = 'evil/\u202Egnp.\u200Bexe';
    await scene.acquire(key, { owner: '\u2066ada\u00AD', metadata: { note: 'שלום\u202E 👩\u200D👧' } });
    await shows(page, '#events', 'evil/\\u{202e}gnp.\\u{200b}exe granted to \\u{2066}ada\\u{ad}, token');
    await page.getByRole('searchbox').fill(key);
    await page.locator('summary').click();
    await shows(page, '.holders', '\\u{2066}ada\\u{ad}');
    await shows(page, 'code', '{ "note": "שלום\\u{202e} 👩\u200D👧" }');
    await page.getByRole('button', EVICT).click();
    await shows(page, '#evict-title', 'Evict who holds evil/\\u{202e}gnp.\\u{200b}exe?');
    expect(await page.locator('body').textContent()).not.toMatch(/[\u202E\u2066\u200B\u00AD]/);
  });

  it('what no library of ours would store is shown, too: control characters, and metadata of any kind', async () => {
    const scene = await newScene();
    const page = await lookLive(scene);
    const texts = ['no JSON \u0007 <b>', '"text"', '[1, [2]]', '4711', 'false', 'x'.repeat(4_096)];
    const commands = texts.map((metadata, index) => ({
      kind: 'claim' as const,
      key: `kinds/${index}`,
      hold: { process: `p-${index}`, number: 1 },
      owner: 'o',
      permits: 1,
      capacity: 1,
      ttlMs: 60_000,
      queue: false,
      inbox: null,
      metadata,
    }));
    await Promise.all(scene.store.apply(commands));
    await until(async () => (await names(page)).length === texts.length, 'all are there');
    for (const summary of await page.locator('summary').all()) await summary.click();
    await until(async () => (await page.locator('code:visible').count()) === texts.length, 'all are open');
    const shown = ['no JSON \\u{7} <b>', 'text', '[ 1, [ 2 ] ]', '4711', 'false', 'x'.repeat(4_096)];
    expect(await page.locator('.holders code').allTextContents()).toEqual(shown);
  });

  it('is kept within the page, however long, and takes two lines until it is looked into', async () => {
    const scene = await newScene();
    const name = 'x'.repeat(500);
    await scene.acquire(`long/${name}`, { owner: 'y'.repeat(250), metadata: { z: 'z'.repeat(2_000) } });
    const page = await lookLive(scene, { viewport: { width: 320, height: 640 } });
    const height = async (): Promise<number> => (await page.locator('summary').boundingBox())?.height ?? 0;
    await until(async () => (await height()) > 0, 'it is there');
    expect(await height()).toBeLessThan(150);
    await page.locator('summary').click();
    await shows(page, '.holders', 'yyy');
    expect(await height()).toBeGreaterThan(300);
    const beyond = await page.evaluate(
      'document.documentElement.scrollWidth - document.documentElement.clientWidth',
    );
    expect(beyond).toBe(0);
  });

  it('what somebody marks to copy it stays marked while the lock is renewed and the queue grows', async () => {
    const scene = await newScene();
    const { hold } = await scene.acquire('a/b', { metadata: { job: 'invoices' } });
    const page = await lookLive(scene);
    await page.locator('summary').click();
    await shows(page, '.holders', 'invoices');
    await page.evaluate(`getSelection().selectAllChildren(document.querySelector('.holders code'))`);
    await page.getByLabel('Renewals').check();
    await scene.post('/v2/locks/a/b/renew', { hold, ttl: '90s' });
    await shows(page, '#events', 'renewed');
    void scene.wait('a/b', 'grace');
    await shows(page, '.waiters', 'grace');
    expect(await page.evaluate('getSelection().toString()')).toBe('{ "job": "invoices" }');
  });

  it('of more holders than are told one by one, it tells how many there are', async () => {
    const scene = await newScene();
    const page = await look(scene);
    const holder = { owner: 'ada', permits: 1, capacity: 500, acquiredAt: 1, expiresAt: 2, resting: false };
    const lock = { key: 'a/slots', now: 1, token: 400, waiters: [], waiting: 0, holding: 300 };
    const view = {
      ...lock,
      holders: Array.from({ length: 150 }, (_, token) => ({ ...holder, token, metadata: null })),
    };
    const body = `event: appeared\ndata: ${JSON.stringify(view)}\n\nevent: ready\ndata: {}\n\n`;
    await page.route('**/v2/events', (route) => route.fulfill({ contentType: 'text/event-stream', body }));
    await page.reload();
    await shows(page, '.owner', 'ada and 299 more');
    await page.locator('summary').click();
    await shows(page, '.inside', 'and 200 more');
    expect(await page.locator('.holders > li').count()).toBe(100);
  });
});
