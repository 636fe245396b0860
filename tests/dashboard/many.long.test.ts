/** 100,000 locks: pages, namespaces, search and order, and what any of it costs a frame. */
import { available } from 'holdfast-test-servers';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { clearScene, closeBrowser, lookLive, names, newScene, shows, until } from './scene.js';

afterEach(clearScene);
afterAll(closeBrowser);

interface TraceEvent {
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
  readonly dur?: number;
  /** Processor time of the thread, in microseconds: other work on the machine does not count. */
  readonly tdur?: number;
  readonly args: { readonly name?: string };
}

/**
 * Processor time of the longest task of the page's main thread while `use` runs: script, style, layout and paint, which is what
 * delays a frame. Collecting garbage is not counted: when it happens is up to the browser.
 */
async function longestTaskMs(page: Page, use: () => Promise<unknown>): Promise<number> {
  const browser = page.context().browser();
  if (!browser) throw new Error('The page has no browser.');
  const session = await browser.newBrowserCDPSession();
  const events: TraceEvent[] = [];
  session.on('Tracing.dataCollected', ({ value }) => {
    for (const event of value) events.push(event as unknown as TraceEvent);
  });
  const includedCategories = ['toplevel', 'devtools.timeline'];
  await session.send('Tracing.start', { transferMode: 'ReportEvents', traceConfig: { includedCategories } });
  await use();
  const isComplete = new Promise((resolve) => session.once('Tracing.tracingComplete', resolve));
  await session.send('Tracing.end');
  await isComplete;
  await session.detach();
  const threads = events.filter(({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain');
  const own = events.filter(({ pid, tid }) => threads.some((one) => one.pid === pid && one.tid === tid));
  const collections = own.filter(({ name }) => name === 'MajorGC' || name === 'MinorGC');
  const tasks = own.filter(({ name, tdur }) => /RunTask$/.test(name) && tdur !== undefined);
  // Otherwise nothing was measured.
  expect(tasks.length).toBeGreaterThan(10);
  const costs = tasks.map(({ ts, dur = 0, tdur = 0 }) => {
    const inside = collections.filter((one) => one.ts >= ts && one.ts < ts + dur);
    return tdur - inside.reduce((all, one) => all + (one.tdur ?? 0), 0);
  });
  return Math.max(...costs) / 1_000;
}

describe.runIf(available('chromium'))('100,000 locks', () => {
  it('are paged, searched, ordered and scrolled without a task of 50 ms', { timeout: 600_000 }, async () => {
    const scene = await newScene();
    await scene.take(100_000);
    const page = await lookLive(scene, { viewport: { width: 1280, height: 800 } }, 300_000);
    page.setDefaultTimeout(120_000);
    await shows(page, '#more', 'The first 200 of 100,000.');
    await shows(page, '#held', '100,000');
    const list = async (first: string): Promise<void> =>
      until(async () => (await names(page))[0] === first, `the list begins with ${first}`);
    const steps: Record<string, () => Promise<unknown>> = {
      'scrolling through a page': async () => {
        await page.mouse.move(400, 600);
        for (let turn = 0; turn < 60; turn += 1) await page.mouse.wheel(0, 120);
        await until(async () => (await page.evaluate('scrollY > 3000')) === true, 'the page is scrolled');
      },
      'paging on': async () => {
        await page.getByRole('link', { name: 'Next' }).click();
        await shows(page, '#more', '201 to 400 of 100,000.');
        await page.getByRole('link', { name: 'Last' }).click();
        await shows(page, '#more', '99,801 to 100,000 of 100,000.');
        await until(async () => (await names(page)).at(-1) === 'tenth/099990', 'the last row is there');
      },
      'another order': async () => {
        await page.getByLabel('Order').selectOption('ends');
        await shows(page, '#more', 'The first 200 of 100,000.');
        await list('tenth/000000');
      },
      'a search': async () => {
        await page.getByRole('searchbox').pressSequentially('worker-77 y/0123');
        await list('many/012377');
      },
      'a namespace': async () => {
        await page.getByRole('searchbox').fill('');
        await page.getByLabel('Namespace').selectOption('tenth');
        await shows(page, '#more', 'The first 200 of 10,000.');
      },
      'changes of a thousand locks': async () => {
        const ends = Array.from({ length: 1_000 }, (_, index) => String((index + 1) * 10).padStart(6, '0'));
        await Promise.all(
          scene.store.apply(
            ends.map((name) => ({
              ...{ kind: 'release', key: `tenth/${name}`, hold: { process: `p-${name}`, number: 1 } },
              ...{ minHoldMs: 0 },
            })),
          ),
        );
        await shows(page, '#more', 'The first 200 of 9,000.');
      },
    };
    const costs: Record<string, number> = {};
    for (const [name, use] of Object.entries(steps)) costs[name] = await longestTaskMs(page, use);
    console.log('Longest task, ms of processor time:', costs);
    expect(Object.entries(costs).filter(([, ms]) => ms >= 50)).toEqual([]);
    expect((await names(page)).length).toBe(200);
    expect(await page.evaluate('document.querySelectorAll("*").length')).toBeLessThan(10_000);
  });
});
