/** What the page costs: bytes on the wire, and elements in the browser. Time is in `many.long.test.ts`. */
import { available } from 'holdfast-test-servers';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { clearScene, closeBrowser, look, lookLive, newScene, shows, until } from './scene.js';

afterEach(clearScene);
afterAll(closeBrowser);

/** The bytes that a reload fetches of the page, with their headers; `cached`: with what the browser kept of the time before. */
async function bytesOfReload(page: Page, cached: boolean): Promise<number> {
  const wire = await page.context().newCDPSession(page);
  await wire.send('Network.enable');
  await wire.send('Network.setCacheDisabled', { cacheDisabled: !cached });
  const paths = new Map<string, string>();
  const fetched = new Map<string, number>();
  wire.on('Network.requestWillBeSent', ({ requestId, request }) => {
    const path = new URL(request.url).pathname;
    if (!/session|v2/.test(path)) paths.set(requestId, path);
  });
  wire.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    const path = paths.get(requestId);
    if (path !== undefined) fetched.set(path, (fetched.get(path) ?? 0) + encodedDataLength);
  });
  await page.reload();
  await shows(page, '#status', 'Live');
  await until(async () => fetched.size === new Set(paths.values()).size, 'all is fetched');
  await wire.detach();
  return [...fetched.values()].reduce((all, bytes) => all + bytes, 0);
}

describe.runIf(available('chromium'))('the weight of the dashboard', () => {
  it('is 22 KB on the wire with all headers, and 7 KB the next time', async () => {
    const page = await look(await newScene());
    expect(await bytesOfReload(page, false)).toBeLessThan(22 * 1_024);
    expect(await bytesOfReload(page, true)).toBeLessThan(7 * 1_024);
  });

  it('with a thousand locks, a change makes and removes one row, and no other', async () => {
    const scene = await newScene();
    await scene.take(1_000);
    const page = await lookLive(scene);
    await shows(page, '#more', 'of 1,000');
    await until(async () => (await page.locator('#locks > li').count()) === 200, 'all rows are there');
    await page.evaluate(`(() => {
      globalThis.moved = 0;
      new MutationObserver((all) => {
        for (const { addedNodes, removedNodes } of all) moved += addedNodes.length + removedNodes.length;
      }).observe(document.querySelector('#locks'), { childList: true });
    })()`);
    for (let number = 0; number < 5; number += 1) {
      const held = await scene.acquire(`aaa/${number}`);
      await shows(page, '#locks', `aaa/${number}`);
      await scene.release(`aaa/${number}`, held);
      await until(
        async () => (await page.locator('#locks', { hasText: 'aaa/' }).count()) === 0,
        'it is gone',
      );
    }
    // The new row, and the last one of the page, which makes room for it: each comes and goes.
    expect(await page.evaluate('moved')).toBe(5 * 4);
  });
});
