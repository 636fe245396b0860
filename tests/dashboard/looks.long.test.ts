/** How it looks: pictures to look at, and what can be measured of them. */
import { copyFileSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { available } from 'holdfast-test-servers';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { clearScene, closeBrowser, lookLive, newScene, type Scene, shows } from './scene.js';

afterEach(clearScene);
afterAll(closeBrowser);

/** They stay, to be looked at. */
const PICTURES = join(tmpdir(), 'holdfast-dashboard-pictures');
/** Those of the documents, by their names here. `npm run pictures` takes them again. */
const OF_DOCUMENTS: Readonly<Record<string, string>> = {
  'desk-light': 'dashboard-light',
  'desk-dark-lock': 'dashboard-dark',
  'desk-light-history': 'dashboard-history',
};

async function peopled(): Promise<Scene> {
  const scene = await newScene();
  for (const owner of ['worker-1.eu', 'worker-2.eu']) {
    const held = await scene.acquire('billing/nightly-invoices', { owner });
    await scene.post('/v2/locks/billing/nightly-invoices/acquire', { ttl: '60s', owner: 'worker-3.eu' });
    await scene.release('billing/nightly-invoices', held);
  }
  await scene.acquire('search/reindex', { owner: 'indexer-old' });
  await scene.post('/v2/locks/search/reindex/evict', { reason: 'its host was retired' });
  await scene.acquire('billing/nightly-invoices', {
    ttl: '4m',
    owner: 'worker-3.eu',
    metadata: { job: 'invoices', attempt: 2 },
  });
  await scene.acquire('billing/currency-rates', { ttl: '45s', owner: 'cron-1' });
  for (const owner of ['ada', 'grace'])
    await scene.acquire('reports/monthly', { ttl: '9m', mode: 'read', owner });
  await scene.acquire('search/reindex', { ttl: '30s', permits: 2, capacity: 3, owner: 'indexer' });
  return scene;
}

/** Text against what is behind it, by the formula of WCAG 2; every text that is shown, worst first. */
const CONTRASTS = `(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((value) => {
      const part = value / 255;
      return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = rgba(getComputedStyle(at).backgroundColor);
      if (color[3] === 255) return color;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const element of document.querySelectorAll('body *')) {
    const says = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== '');
    if (!says || !element.checkVisibility()) continue;
    const [a, b] = [light(rgba(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    found.push([Math.round(ratio * 100) / 100, element.textContent.slice(0, 40)]);
  }
  return found.sort((x, y) => x[0] - y[0]);
})()`;

async function worstContrast(page: Page): Promise<readonly [number, string]> {
  const [worst] = (await page.evaluate(CONTRASTS)) as (readonly [number, string])[];
  if (!worst) throw new Error('Nothing is written on the page.');
  return worst;
}

const SCREENS = {
  desk: { width: 1280, height: 860 },
  'at 200 %': { width: 640, height: 430 },
  phone: { width: 375, height: 667 },
  'small phone': { width: 320, height: 640 },
};

/** How much the page is wider than the screen. */
const BEYOND = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
/** What can be used and has no name for a screen reader. */
const NAMELESS = `[...document.querySelectorAll('button, input, select, summary, a, [role=img]')].filter((one) =>
  one.checkVisibility() && !(one.textContent.trim() || one.ariaLabel || one.labels?.length)).length`;

/** Fits, can be read, and has names. */
async function isFine(page: Page): Promise<void> {
  expect(await page.evaluate(BEYOND)).toBe(0);
  expect((await worstContrast(page))[0]).toBeGreaterThanOrEqual(4.5);
  expect(await page.evaluate(NAMELESS)).toBe(0);
}

async function picture(page: Page, name: string): Promise<void> {
  mkdirSync(PICTURES, { recursive: true });
  const path = join(PICTURES, `${name}.png`);
  await page.screenshot({ path });
  const shown = OF_DOCUMENTS[name];
  const isWanted = process.env.HOLDFAST_DOCS_PICTURES !== undefined;
  if (shown && isWanted) copyFileSync(path, new URL(`../../docs/assets/${shown}.png`, import.meta.url));
}

describe.runIf(available('chromium'))('the look of the dashboard', () => {
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const [name, viewport] of Object.entries(SCREENS)) {
      it(`${name}, ${colorScheme}: fits, can be read, and has names for what can be used`, async () => {
        const scene = await peopled();
        const page = await lookLive(scene, { viewport, colorScheme });
        for (const owner of ['worker-1.eu', 'worker-7.us']) {
          void scene.wait('billing/nightly-invoices', owner);
          await shows(page, '#events', owner);
        }
        await page.locator('summary', { hasText: 'nightly-invoices' }).click();
        await page.getByRole('button', { name: /^Evict/ }).waitFor();
        await page.waitForTimeout(1_200);
        await picture(page, `${name}-${colorScheme}`);
        await isFine(page);
        await page.getByRole('button', { name: /^Evict/ }).click();
        expect((await worstContrast(page))[0]).toBeGreaterThanOrEqual(4.5);
        await picture(page, `${name}-${colorScheme}-evict`);
        await page.keyboard.press('Escape');
        for (const view of ['lock?key=billing%2Fnightly-invoices', 'history', 'service']) {
          await page.goto(`${scene.url}#/${view}`);
          await page.locator('#page h2').waitFor();
          await page.waitForTimeout(500);
          await isFine(page);
          await picture(page, `${name}-${colorScheme}-${view.split('?')[0]}`);
        }
        await page.goto(`${scene.url}#/`);
        await scene.stop();
        await shows(page, '#banner', 'The connection is lost.');
        expect((await worstContrast(page))[0]).toBeGreaterThanOrEqual(4.5);
        await picture(page, `${name}-${colorScheme}-lost`);
      });
    }
  }

  for (const count of [0, 1, 1_000, 100_000]) {
    it(`${count} locks: fits, can be read, and has names`, { timeout: 600_000 }, async () => {
      const scene = await newScene();
      await scene.take(count);
      for (const colorScheme of ['light', 'dark'] as const) {
        for (const name of ['desk', 'phone'] as const) {
          const page = await lookLive(scene, { viewport: SCREENS[name], colorScheme }, 200_000);
          await (count === 0 ? page.locator('#first') : page.locator('#locks > li').first()).waitFor();
          await page.waitForTimeout(500);
          await picture(page, `${count}-${name}-${colorScheme}`);
          await isFine(page);
          await page.close();
        }
      }
    });
  }

  it('nothing moves for who asked for less motion', async () => {
    const scene = await peopled();
    const animations =
      'document.querySelector("#locks > li") ? getComputedStyle(document.querySelector("#locks > li")).animationName : ""';
    const still = await lookLive(scene, { reducedMotion: 'reduce' });
    await shows(still, '#locks', 'reports/monthly');
    expect(await still.evaluate(animations)).toBe('none');
    const moving = await lookLive(scene, { reducedMotion: 'no-preference' });
    await shows(moving, '#locks', 'reports/monthly');
    expect(await moving.evaluate(animations)).toBe('arrive');
  });
});
