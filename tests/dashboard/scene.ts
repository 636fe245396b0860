/** A service with its dashboard in a real browser, and short ways to use both. */
import { join } from 'node:path';
import type { Store } from 'holdfast';
import { memoryStore } from 'holdfast/memory';
import type { Command } from 'holdfast/protocol';
import { createApiKey, createAuth, createService, revokeApiKeys, type Service } from 'holdfast-service';
import { need } from 'holdfast-test-servers';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { expect } from 'vitest';
import { atTheEnd, freshFolder } from '../scene.js';

export { clearScene, until } from '../scene.js';

const TIMEOUT_MS = 15_000;

let browser: Browser | null = null;

/** For `afterAll`. */
export async function closeBrowser(): Promise<void> {
  await browser?.close();
  browser = null;
}

export interface Grant {
  readonly hold: string;
  readonly token: number;
}

export class Scene {
  readonly store: Store;
  readonly #keys: string | undefined;
  readonly #bearer: string | undefined;
  #service: Service | null = null;
  #port = 0;
  /** They end with the service. */
  readonly #waits: Promise<Grant | null>[] = [];

  constructor(store: Store, keys?: string, bearer?: string) {
    this.store = store;
    this.#keys = keys;
    this.#bearer = bearer;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/`;
  }

  /** Always at the same address. */
  async start(): Promise<this> {
    const auth = this.#keys === undefined ? {} : { auth: createAuth({ apiKeys: this.#keys }) };
    this.#service = createService({ store: this.store, ...auth });
    this.#port = Number(new URL(await this.#service.listen({ port: this.#port })).port);
    return this;
  }

  async stop(): Promise<void> {
    await this.#service?.close();
    this.#service = null;
    await Promise.all(this.#waits.splice(0));
  }

  async post(path: string, body: object): Promise<Response> {
    const authorization = this.#bearer === undefined ? {} : { authorization: `Bearer ${this.#bearer}` };
    return await fetch(new URL(path, this.url), {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...authorization },
      body: JSON.stringify(body),
    });
  }

  /** `namespace/name`, taken at once. */
  async acquire(key: string, body: object = {}): Promise<Grant> {
    const response = await this.post(pathOf(key, 'acquire'), { ttl: '60s', owner: 'ada', ...body });
    if (response.status !== 200) throw new Error(await response.text());
    return (await response.json()) as Grant;
  }

  /** Joins the line; gives the grant, or null when the service ended the waiting. */
  wait(key: string, owner: string): Promise<Grant | null> {
    const waited = this.post(pathOf(key, 'acquire'), { ttl: '60s', owner, wait: '60s' });
    const granted = waited.then(async (response) =>
      response.status === 200 ? ((await response.json()) as Grant) : null,
    );
    this.#waits.push(granted);
    return granted;
  }

  /** Takes `many/000000` and so on, past the service. */
  async take(count: number): Promise<void> {
    for (let from = 0; from < count; from += 1_000) {
      const numbers = Array.from({ length: Math.min(1_000, count - from) }, (_, index) => from + index);
      await Promise.all(this.store.apply(numbers.map(claimOf)));
    }
  }

  async release(key: string, { hold }: Grant): Promise<void> {
    expect((await this.post(pathOf(key, 'release'), { hold })).status).toBe(200);
  }
}

function claimOf(number: number): Command {
  const name = String(number).padStart(6, '0');
  return {
    ...{
      kind: 'claim',
      key: `${number % 10 === 0 ? 'tenth' : 'many'}/${name}`,
      hold: { process: `p-${name}`, number: 1 },
    },
    ...{
      owner: `worker-${number % 100}`,
      permits: 1,
      capacity: 1,
      ttlMs: 3_600_000 + (number % 1_000) * 1_000,
    },
    ...{ tokens: 1, queue: false, inbox: null, metadata: JSON.stringify({ job: number }) },
  };
}

function pathOf(key: string, action: string): string {
  const at = key.indexOf('/');
  const [namespace, name] = [key.slice(0, at), key.slice(at + 1)];
  return `/v2/locks/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}/${action}`;
}

export async function newScene(store: Store = memoryStore()): Promise<Scene> {
  return await begin(new Scene(store));
}

export interface GuardedScene {
  readonly scene: Scene;
  readonly admin: string;
  readonly reader: string;
  /** By its name. */
  revoke(name: 'boss' | 'guest'): Promise<unknown>;
}

/** With keys: an admin of everything, and one who may only read `billing`. */
export async function newGuardedScene(): Promise<GuardedScene> {
  const path = join(freshFolder(), 'keys.json');
  const make = async (name: string, rights: readonly string[]): Promise<string> =>
    (await createApiKey({ path, by: 'test' }, { name, rights })).text;
  const admin = await make('boss', ['admin:*']);
  const reader = await make('guest', ['read:billing']);
  const revoke = (name: string): Promise<unknown> => revokeApiKeys({ path, by: 'test' }, name);
  return { scene: await begin(new Scene(memoryStore(), path, admin)), admin, reader, revoke };
}

async function begin(scene: Scene): Promise<Scene> {
  atTheEnd(() => scene.store.close());
  atTheEnd(() => scene.stop());
  return await scene.start();
}

/** Opens the dashboard. What breaks the page, or its Content-Security-Policy, fails the test when it ends. */
export async function look(scene: Scene, options: BrowserContextOptions = {}): Promise<Page> {
  browser ??= await chromium.launch({ executablePath: await need('chromium') });
  const context = await browser.newContext({ reducedMotion: 'reduce', ...options });
  const page = await context.newPage();
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('console', (message) => {
    // What was refused or could not be reached is said there too, and is part of many tests.
    if (message.type() !== 'log' && !/^Failed to load resource/.test(message.text()))
      faults.push(message.text());
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(scene.url)) faults.push(`asked for ${request.url()}`);
  });
  atTheEnd(async () => {
    await context.close();
    expect(faults).toEqual([]);
  });
  page.setDefaultTimeout(TIMEOUT_MS);
  await page.goto(scene.url);
  return page;
}

export async function lookLive(
  scene: Scene,
  options: BrowserContextOptions = {},
  timeout = TIMEOUT_MS,
): Promise<Page> {
  const page = await look(scene, options);
  await page.locator('#status', { hasText: 'Live' }).waitFor({ timeout });
  return page;
}

/** Waits until the text of what is shown there has this in it. */
export async function shows(page: Page, selector: string, text: string): Promise<void> {
  await page.locator(selector).filter({ hasText: text }).first().waitFor();
}

/** The names of the locks in the list, from above. */
export async function names(page: Page): Promise<readonly string[]> {
  return await page.locator('#locks > li .key').allTextContents();
}
