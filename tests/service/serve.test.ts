import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sleep, until, usePlace } from '../cli/holdfast.js';
import { post, type Served, serve } from './served.js';

const place = usePlace();
const served = (args?: readonly string[], environment?: NodeJS.ProcessEnv): Promise<Served> =>
  serve(place, args, environment);

describe('holdfast serve', () => {
  it('says where, answers with locks and the dashboard, and logs one line a request', async () => {
    const { url, running, stderr } = await served();
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(stderr()).toContain('no auth');
    const granted = await post(`${url}/v2/locks/shop/stock/acquire`, { ttl: '30s' });
    const { hold } = (await granted.json()) as { hold: string };
    expect(granted.status).toBe(200);
    expect((await fetch(`${url}/`)).headers.get('content-type')).toMatch(/^text\/html/);
    expect(await (await fetch(`${url}/healthz`)).json()).toEqual({ status: 'ok' });
    expect(await (await fetch(`${url}/readyz`)).json()).toEqual({ status: 'ready' });
    running.kill('SIGTERM');
    const { status, stdout } = await running.ended;
    const lines = stdout.split('\n').filter((line) => line.includes('/acquire'));
    expect([status, lines.length]).toEqual([0, 1]);
    expect(stdout).not.toContain(hold);
  });

  it('what it granted outlives it: the next one knows the hold', async () => {
    const first = await served();
    const granted = await post(`${first.url}/v2/locks/shop/stock/acquire`, { ttl: '60s' });
    const { hold } = (await granted.json()) as { hold: string };
    first.running.kill('SIGKILL');
    await first.running.ended;
    const second = await served();
    expect((await post(`${second.url}/v2/locks/shop/stock/acquire`, { ttl: '1s' })).status).toBe(423);
    const renewed = await post(`${second.url}/v2/locks/shop/stock/renew`, { hold, ttl: '60s' });
    expect(renewed.status).toBe(200);
  });

  it('TERM: who waits is answered that it closes, then it exits 0', async () => {
    const { url, running, stderr } = await served();
    await post(`${url}/v2/locks/shop/stock/acquire`, { ttl: '60s' });
    const waiting = post(`${url}/v2/locks/shop/stock/acquire`, { ttl: '60s', wait: '60s' });
    await lineOf(url, 1);
    running.kill('SIGTERM');
    const answer = await waiting;
    expect([answer.status, await answer.json()]).toMatchObject([503, { code: 'closing' }]);
    const { status } = await running.ended;
    expect([status, stderr()]).toEqual([0, expect.stringContaining('SIGTERM: closing')]);
  });

  it('exits 69 where it cannot listen, and says why', async () => {
    const { status, stderr } = await place.run(['serve', '--host', 'fe80::1%nowhere', '--insecure']);
    expect(stderr).toMatch(
      /^holdfast: fe80::1%nowhere:8080: cannot listen there: listen E[A-Z]+: .+; see --host and --port$/m,
    );
    expect(status).toBe(69);
  });

  it('INT ends it just so', async () => {
    const { running } = await served();
    running.kill('SIGINT');
    expect((await running.ended).status).toBe(0);
  });
});

async function lineOf(url: string, count: number): Promise<void> {
  for (let tries = 0; tries < 400; tries++) {
    const lock = (await (await fetch(`${url}/v2/locks/shop/stock`)).json()) as { waiting: number };
    if (lock.waiting === count) return;
    await sleep(25);
  }
  throw new Error(`There were never ${count} in the queue`);
}

describe('holdfast serve --drain', () => {
  it('a second signal ends it at once, also one of another kind', async () => {
    const { running, stderr } = await served(['--drain', '10m']);
    running.kill('SIGTERM');
    await until(
      () => stderr().includes('draining'),
      () => `the word that it drains, in: ${stderr()}`,
    );
    running.kill('SIGINT');
    expect((await running.ended).signal).toBe('SIGINT');
  });

  it('TERM: /readyz is 503 while the rest still works, then it exits 0', async () => {
    const { url, running, stderr } = await served(['--drain', '4s']);
    running.kill('SIGTERM');
    await until(
      () => stderr().includes('SIGTERM: draining for 4s, then closing'),
      () => `the word that it drains, in: ${stderr()}`,
    );
    const ready = await fetch(`${url}/readyz`);
    expect([ready.status, await ready.json()]).toEqual([503, { status: 'draining' }]);
    expect((await post(`${url}/v2/locks/shop/stock/acquire`, { ttl: '1s' })).status).toBe(200);
    expect((await running.ended).status).toBe(0);
  });
});

describe('holdfast serve --print-config', () => {
  it('prints what is in force from all three sources, starts nothing, hides secrets', async () => {
    writeFileSync(join(place.folder, 'service.json'), JSON.stringify({ port: 1, host: '127.0.0.3' }));
    const { status, stdout } = await place.run(
      ['serve', '--print-config', '--config', 'service.json', '--audit', 'audit.jsonl'],
      { HOLDFAST_PORT: '2', HOLDFAST_STORE: 'redis://:s3cret@cache' },
    );
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      ...{ host: '127.0.0.3', port: 2, audit: 'audit.jsonl', store: 'redis://***@cache' },
    });
    expect(stdout).not.toContain('s3cret');
  });
});

describe('keys', () => {
  it('made by holdfast api-key open the service, and no longer once revoked', async () => {
    mkdirSync(join(place.folder, 'state'));
    const keys = join(place.folder, 'state', 'keys.json');
    const made = await place.run(['api-key', 'create', 'shop', '--rights', 'lock:shop', '--api-keys', keys]);
    const { url, stderr } = await served(['--api-keys', keys, '--host', '0.0.0.0']);
    expect(stderr()).not.toContain('no auth');
    const here = `http://127.0.0.1:${new URL(url).port}/v2/locks/shop/stock`;
    const headers = { authorization: `Bearer ${made.stdout.trim()}` };
    expect((await fetch(here)).status).toBe(401);
    expect((await fetch(here, { headers })).status).toBe(200);
    await place.run(['api-key', 'revoke', 'shop', '--api-keys', keys]);
    let status = 200;
    for (let tries = 0; tries < 200 && status === 200; tries++) {
      ({ status } = await fetch(here, { headers }));
      await sleep(25);
    }
    expect(status).toBe(401);
  });
});
