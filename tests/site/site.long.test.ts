/** The site, built and used in a real browser. */
import { need } from 'holdfast-test-servers';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clearScene } from '../scene.js';
import { buildSite, deadLinksOf, pagesOf, serveFiles } from './built-site.js';

const PHONE = { width: 375, height: 800 };
const LAPTOP = { width: 1280, height: 900 };

let folder: string;
let url: string;
let browser: Browser;

beforeAll(async () => {
  folder = await buildSite();
  url = await serveFiles(folder);
  browser = await chromium.launch({ executablePath: await need('chromium') });
}, 600_000);
afterAll(async () => {
  await browser?.close();
  await clearScene();
});

/** Runs in a page of its own, and expects that nothing went wrong in it. */
async function within(options: BrowserContextOptions, use: (page: Page) => Promise<void>): Promise<void> {
  const context = await browser.newContext({ reducedMotion: 'reduce', ...options });
  const page = await context.newPage();
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(`${page.url()}: ${message.text()}`);
  });
  await use(page);
  expect(faults).toEqual([]);
  await context.close();
}

describe('the site', () => {
  it('has pages, and no link on them is dead', () => {
    const pages = pagesOf(folder);
    expect(pages.length).toBeGreaterThan(80);
    const dead = pages.flatMap((page) => deadLinksOf(folder, page).map((link) => `${page}: ${link}`));
    expect(dead).toEqual([]);
  });

  it('finds the defaults of options by the word "default"', async () => {
    await within({ viewport: LAPTOP }, async (page) => {
      await page.goto(`${url}/start.html`);
      await page.keyboard.press('Control+k');
      await page.getByRole('searchbox').fill('default ttl');
      await page.locator('#localsearch-list [role=option]').first().waitFor();
      const found = await page.locator('#localsearch-list [role=option]').allInnerTexts();
      expect(found.length).toBeGreaterThan(5);
      expect(found.join('\n')).toMatch(/AcquireOptions|Choosing ttl and wait|How long is the ttl/);
    });
  });

  it('fits a phone: no page is wider than the screen', { timeout: 600_000 }, async () => {
    await within({ viewport: PHONE }, async (page) => {
      const wide: string[] = [];
      for (const path of pagesOf(folder).filter((one) => !one.startsWith('adr'))) {
        await page.goto(`${url}/${path}`);
        const width = await page.evaluate('document.documentElement.scrollWidth');
        if (Number(width) > PHONE.width) wide.push(`${path}: ${String(width)}`);
      }
      expect(wide).toEqual([]);
    });
  });

  it.each(['light', 'dark'] as const)(
    'shows its pictures in the colours of the page, %s',
    async (colorScheme) => {
      await within({ viewport: LAPTOP, colorScheme }, async (page) => {
        for (const path of ['which-store', 'lease']) {
          await page.goto(`${url}/${path}.html`);
          const picture = page.locator('main img').first();
          await picture.waitFor();
          // The corner of the picture has the colour of its background.
          const corner = await picture.evaluate((image) => {
            const { document } = globalThis as unknown as {
              document: { createElement(name: 'canvas'): Canvas };
            };
            const canvas = document.createElement('canvas');
            const context = canvas.getContext('2d');
            context.drawImage(image, 0, 0);
            return [...context.getImageData(60, 12, 1, 1).data].slice(0, 3);
          });
          const brightness = corner.reduce((sum, part) => sum + part, 0) / 3;
          if (colorScheme === 'light') expect(brightness).toBeGreaterThan(200);
          else expect(brightness).toBeLessThan(60);
        }
      });
    },
  );
});

interface Canvas {
  getContext(kind: '2d'): {
    drawImage(image: unknown, x: number, y: number): void;
    getImageData(x: number, y: number, width: number, height: number): { readonly data: Uint8ClampedArray };
  };
}
