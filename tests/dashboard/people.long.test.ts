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

async function logIn(page: Page, key: string): Promise<void> {
  await page.getByLabel('API key', { exact: true }).fill(key);
  await page.getByRole('button', { name: 'Log in' }).click();
}

const EVICT = { name: /^Evict who holds/ };

describe.runIf(available('chromium'))('evicting', () => {
  it('asks first, with focus on what changes nothing; only then evicts, and the next waiter moves up', async () => {
    const scene = await newScene();
    const page = await lookLive(scene);
    const { token } = await scene.acquire('billing/nightly', { owner: 'stuck' });
    await page.locator('summary').click();
    void scene.wait('billing/nightly', 'next');
    await shows(page, '.waiters', 'next');
    await page.getByRole('button', EVICT).click();
    const dialog = page.getByRole('dialog', { name: 'Evict who holds billing/nightly?' });
    expect(await dialog.textContent()).toContain(`stuck token ${token}`);
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Keep');
    await dialog.getByRole('button', { name: 'Keep' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await page.getByRole('button', EVICT).click();
    await dialog.waitFor();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    expect(await page.locator('.holders').textContent()).toContain('stuck');
    await page.getByRole('button', EVICT).click();
    await dialog.getByRole('button', { name: 'Evict' }).click();
    await shows(page, '#toast', 'Evicted from billing/nightly: 1.');
    await shows(page, '.holders', 'next');
    expect(await dialog.isVisible()).toBe(false);
  });

  it('takes the lock from nobody who came to hold it while it was being asked', async () => {
    const scene = await newScene();
    const page = await lookLive(scene);
    const first = await scene.acquire('a/b', { owner: 'first' });
    await page.locator('summary').click();
    await page.getByRole('button', EVICT).click();
    await scene.release('a/b', first);
    await scene.acquire('a/b', { owner: 'second' });
    await page.getByRole('dialog').getByRole('button', { name: 'Evict' }).click();
    await shows(page, '#toast', 'Nobody was left to evict from a/b.');
    await shows(page, '#locks', 'second');
  });

  it('is not offered to who is no admin', async () => {
    const { scene, reader } = await newGuardedScene();
    await scene.acquire('billing/nightly');
    const page = await look(scene);
    await logIn(page, reader);
    await shows(page, '#locks', 'billing/nightly');
    await page.locator('summary').click();
    await shows(page, '.inside', 'Only an admin of this namespace may evict.');
    expect(await page.getByRole('button', EVICT).count()).toBe(0);
  });

  it('says so when the service refuses it, or does not answer', async () => {
    const scene = await newScene();
    await scene.acquire('a/b');
    const page = await lookLive(scene);
    await page.locator('summary').click();
    await page.getByRole('button', EVICT).click();
    const problem = {
      status: 403,
      code: 'forbidden',
      detail: 'key:ada has no right "admin" on "a".',
    };
    await page.route('**/v2/batch', (route) => route.fulfill({ json: { replies: [{ problem }] } }));
    await page.getByRole('dialog').getByRole('button', { name: 'Evict' }).click();
    await shows(page, '#evict-error', 'Not evicted. key:ada has no right "admin"');
    await page.unroute('**/v2/batch');
    await page.route('**/v2/batch', (route) => route.abort());
    await page.getByRole('dialog').getByRole('button', { name: 'Evict' }).click();
    await shows(page, '#evict-error', 'the outcome is unknown');
    await page.unroute('**/v2/batch');
    await page.getByRole('dialog').getByRole('button', { name: 'Evict' }).click();
    await shows(page, '#toast', 'Evicted from a/b: 1.');
  });
});

describe.runIf(available('chromium'))('logging in', () => {
  it('is asked for; a wrong key is refused in words, a good one stays for the tab, and can be forgotten', async () => {
    const { scene, admin } = await newGuardedScene();
    await scene.acquire('billing/nightly');
    const page = await look(scene);
    await page.getByRole('heading', { name: 'Log in' }).waitFor();
    expect(await page.evaluate('document.activeElement.id')).toBe('key');
    expect(await page.locator('#board').isVisible()).toBe(false);
    await logIn(page, `${admin.slice(0, -4)}AAAA`);
    await shows(page, '#login-error', 'The API key is unknown');
    expect(await page.evaluate('sessionStorage.length')).toBe(0);
    await logIn(page, 'naïve key');
    await shows(page, '#login-error', 'An API key has no spaces');
    await logIn(page, ` ${admin} `);
    await shows(page, '#locks', 'billing/nightly');
    await shows(page, '#who', 'key:boss');
    await page.reload();
    await shows(page, '#locks', 'billing/nightly');
    expect(page.url()).toBe(scene.url);
    expect(await page.content()).not.toContain(admin);
    expect(await page.evaluate('document.cookie + Object.keys(localStorage).length')).toBe('0');
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByRole('heading', { name: 'Log in' }).waitFor();
    expect(await page.evaluate('sessionStorage.length')).toBe(0);
    // Nothing of what the last one saw is left in the page.
    await until(async () => !(await page.content()).includes('nightly'), 'it is forgotten');
  });

  it('a key sees what it may read, and an empty board where it may read nothing', async () => {
    const { scene, reader } = await newGuardedScene();
    await scene.acquire('secret/thing');
    const page = await look(scene);
    await logIn(page, reader);
    await shows(page, '#notice', 'No lock that this key may see is held.');
    await scene.acquire('billing/mine');
    await until(async () => (await names(page)).join() === 'billing/mine', 'its own appears');
    expect(await page.content()).not.toContain('secret');
  });

  it('is asked for again once the key is revoked, and what it saw is gone', async () => {
    const { scene, reader, revoke } = await newGuardedScene();
    await scene.acquire('billing/mine');
    const page = await look(scene);
    await page.clock.install();
    await page.reload();
    await logIn(page, reader);
    await shows(page, '#locks', 'billing/mine');
    await revoke('guest');
    // The page asks every half minute whether its key is still good.
    await until(async () => {
      await page.clock.fastForward(31_000);
      return await page.getByRole('heading', { name: 'Log in' }).isVisible();
    }, 'it is asked for');
    await shows(page, '#login-error', 'The API key is unknown or no longer valid.');
    await until(async () => !(await page.content()).includes('billing/mine'), 'it is gone');
  });

  it('one that is forbidden to look is told so, and may try again', async () => {
    const scene = await newScene();
    const page = await lookLive(scene);
    const body = { status: 403, code: 'forbidden', detail: 'Not from here.' };
    const fulfil = { status: 403, contentType: 'application/problem+json', body: JSON.stringify(body) };
    await page.route('**/v2/events', (route) => route.fulfill(fulfil));
    await page.reload();
    await shows(page, '#banner', 'This API key may not read locks. Not from here.');
    await page.unroute('**/v2/events');
    await page.getByRole('button', { name: 'Try now' }).click();
    await shows(page, '#status', 'Live');
  });

  it('one whose key is refused may log in with another', async () => {
    const { scene, reader, admin } = await newGuardedScene();
    await scene.acquire('secret/thing');
    const page = await look(scene);
    const fulfil = { status: 403, contentType: 'application/problem+json', body: '{}' };
    await page.route('**/v2/events', (route, request) =>
      request.headers().authorization === `Bearer ${reader}` ? route.fulfill(fulfil) : route.continue(),
    );
    await logIn(page, reader);
    await shows(page, '#banner', 'This API key may not read locks.');
    await page.getByRole('button', { name: 'Log out' }).click();
    await logIn(page, admin);
    await shows(page, '#locks', 'secret/thing');
  });
});

describe.runIf(available('chromium'))('with the keyboard alone', () => {
  it('one finds a lock, looks into it, and evicts; focus is never lost', async () => {
    const scene = await newScene();
    await scene.acquire('a/first');
    await scene.acquire('b/second');
    const page = await lookLive(scene);
    await until(async () => (await names(page)).length === 2, 'both are there');
    const focused = (): Promise<unknown> =>
      page.evaluate('document.activeElement.id || document.activeElement.textContent');
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Skip to the locks');
    await page.keyboard.press('/');
    expect(await focused()).toBe('search');
    await page.keyboard.type('first');
    await until(async () => (await names(page)).length === 1, 'it is found');
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('sort');
    await page.keyboard.press('Tab');
    expect(await focused()).toContain('a/first');
    await page.keyboard.press('Enter');
    await page.getByRole('button', EVICT).waitFor();
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Evict…');
    await page.keyboard.press('Enter');
    expect(await focused()).toBe('evict-no');
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('evict-yes');
    await page.keyboard.press('Enter');
    await shows(page, '#toast', 'Evicted from a/first: 1.');
    await until(async () => (await names(page)).length === 0, 'it is gone');
    await until(async () => (await focused()) === 'search', 'focus is in the search again');
  });

  it('where they are not side by side, the events are a link away from the search', async () => {
    const scene = await newScene();
    for (let number = 0; number < 30; number += 1) await scene.acquire(`a/${number}`);
    const page = await lookLive(scene, { viewport: { width: 390, height: 700 } });
    await until(async () => (await names(page)).length === 30, 'all are there');
    const isSeen = (): Promise<unknown> =>
      page.evaluate(`document.querySelector('#events-title').getBoundingClientRect().top < innerHeight`);
    expect(await isSeen()).toBe(false);
    await page.keyboard.press('/');
    for (const key of ['Tab', 'Tab', 'Enter']) await page.keyboard.press(key);
    await until(async () => (await isSeen()) === true, 'the events are in sight');
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.id')).toBe('renewals');
  });

  it('what is focused can be seen', async () => {
    const scene = await newScene();
    const page = await lookLive(scene);
    await page.keyboard.press('/');
    expect(await page.evaluate('getComputedStyle(document.activeElement).outlineWidth')).toBe('3px');
  });
});
