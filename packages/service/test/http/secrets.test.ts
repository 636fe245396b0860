import { afterEach, describe, expect, it } from 'vitest';
import { clearScene, type Grant, listen, open, STORES, stage, until } from '../scene.js';

afterEach(clearScene);

describe('hold ids are secrets of their holder', () => {
  for (const [name, newStore] of Object.entries(STORES)) {
    it(`on ${name}: never in lists, inspection, events, problems or logs`, async () => {
      const scene = await stage({ store: newStore() });
      const { get, post, acquire, lines } = scene;
      const events = await listen(scene.url, '/v2/events');
      await until(() => events.events.some(({ event }) => event === 'ready'), 'it is ready');
      const own = 'clients-own-secret.3';
      const seen: string[] = [];
      const note = (text: string): void => void seen.push(text);

      const made = await acquire('a/made', { owner: 'ada' });
      const brought = await acquire('a/brought', { hold: own });
      const rested = await acquire('a/rested', { minHold: '10s' });
      const idempotencyKey = 'ec5a1d92-idempotency-key';
      const keyed = await post(
        '/v2/locks/a/keyed/acquire',
        { ttl: '30s' },
        { 'idempotency-key': idempotencyKey },
      );
      const waiter = open(scene.url, '/v2/locks/a/made/acquire', {
        ttl: '30s',
        wait: '20s',
        hold: 'waiting-secret.1',
      });
      await until(async () => (await get('/v2/locks/a/made')).body.waiting === 1, 'it waits');
      await post('/v2/locks/a/rested/release', { hold: rested.hold });

      for (const path of ['a/made', 'a/brought', 'a/rested', 'a/keyed']) {
        note((await get(`/v2/locks/${path}`)).text);
        note((await post(`/v2/locks/${path}/acquire`, { ttl: '1s' })).text);
        note((await post(`/v2/locks/${path}/acquire`, { ttl: '1s', wait: 100 })).text);
      }
      note((await get('/v2/locks')).text);
      note((await get('/v2/locks?metadata=text')).text);
      note((await post('/v2/locks/a/made/renew', { hold: own, ttl: '1s' })).text);
      note((await post('/v2/locks/a/made/renew', { hold: `${own}x y`, ttl: '1s' })).text);
      note((await post('/v2/locks/a/made/renew', { hold: made.hold })).text);
      note((await post('/v2/locks/a/made/renew', `{"hold":"${made.hold}"`)).text);
      note((await post('/v2/locks/a/made/acquire', { ttl: '1s', [made.hold]: 1 })).status.toString());
      note((await post('/v2/locks/a/brought/evict')).text);
      note((await get('/v2/probe')).text);
      note((await get('/v2/openapi.json')).text);
      await until(
        () => events.text().includes('a/keyed') && events.text().includes('a/rested'),
        'events came',
      );

      const grants = [made, brought, rested, keyed.body as unknown as Grant];
      const secrets = [
        ...grants.map(({ hold }) => hold.split('.')[0] ?? ''),
        idempotencyKey,
        'waiting-secret',
      ];
      expect(secrets).toHaveLength(6);
      for (const secret of secrets) {
        expect(secret.length).toBeGreaterThan(10);
        expect(seen.join('\n')).not.toContain(secret);
        expect(events.text()).not.toContain(secret);
        expect(lines.join('\n')).not.toContain(secret);
      }
      expect(lines.length).toBeGreaterThan(10);
      waiter.leave();
    });
  }

  it('an error of the store that repeats what it was told is blanked in the log', async () => {
    const memory = STORES.memory?.();
    if (!memory) throw new Error('There is no memory store.');
    const chatty = {
      ...memory,
      apply: (commands: Parameters<typeof memory.apply>[0]) =>
        commands.map((command) => Promise.reject(new Error(`failed: ${JSON.stringify(command)}`))),
    };
    const { post, lines } = await stage({ store: chatty });
    const own = 'clients-own-secret.3';
    const answers = await Promise.all([
      post('/v2/locks/a/b/release', { hold: own }),
      post('/v2/locks/a/b/acquire', { ttl: '30s' }),
      post('/v2/locks/a/b/acquire', { ttl: '30s', wait: 500 }),
    ]);
    for (const { status, text, body } of answers) {
      expect([status, body.code]).toEqual([503, 'unknown']);
      expect(text).not.toContain('failed:');
    }
    const log = lines.join('');
    expect(log.split('failed:')).toHaveLength(4);
    expect(log).not.toContain('clients-own-secret');
    // Those that the service made are hidden too, though nobody knows them here.
    const shown = [...log.matchAll(/\\"process\\":\\"([^"\\]*)/g)].map(([, process]) => process);
    expect(shown).toEqual(['…', '…', '…']);
  });

  it('neither headers nor queries nor bodies are logged', async () => {
    const { call, lines } = await stage();
    const headers = { authorization: 'Bearer top-secret', cookie: 'top-secret', 'x-api-key': 'top-secret' };
    await call('GET', '/v2/locks?prefix=top-secret', undefined, headers);
    await call('GET', '/nowhere?token=top-secret', undefined, headers);
    await call('POST', '/v2/locks/a/b/acquire', { ttl: '1s', metadata: { password: 'top-secret' } }, headers);
    await call('POST', '/v2/locks/a/b/acquire', '{"ttl": "top-secret', headers);
    expect(lines).toHaveLength(4);
    expect(lines.join('')).not.toContain('top-secret');
  });

  it('a client that went away has its line too, and it is no trouble of ours', async () => {
    const { acquire, url, get, lines } = await stage();
    await acquire('a/b');
    const leaver = open(url, '/v2/locks/a/b/acquire', { ttl: '30s', wait: '20s' });
    await until(async () => (await get('/v2/locks/a/b')).body.waiting === 1, 'it waits');
    leaver.leave();
    await until(() => lines.some((line) => line.includes('"outcome":"gone"')), 'it is logged');
    const line = JSON.parse(lines.find((one) => one.includes('"outcome":"gone"')) ?? '{}') as object;
    expect(line).toMatchObject({ level: 30, status: 499, key: 'a/b', waitedMs: expect.any(Number) });
  });

  it('one line a request: id, principal, key, outcome, durations', async () => {
    const { acquire, post, lines } = await stage();
    await acquire('a/b');
    const { headers } = await post('/v2/locks/a/b/acquire', { ttl: '1s' }, { 'x-request-id': 'mine-2' });
    await until(() => lines.length === 2, 'both are logged');
    const parsed = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(parsed[0]).toMatchObject({ key: 'a/b', outcome: 'granted', principal: 'anonymous', status: 200 });
    const requestId = headers.get('x-request-id');
    expect(parsed[1]).toMatchObject({
      ...{ requestId, clientRequestId: 'mine-2', outcome: 'busy', status: 423 },
    });
    expect(parsed[0]).not.toHaveProperty('clientRequestId');
    for (const line of parsed) {
      expect(line.durationMs).toEqual(expect.any(Number));
      expect(line.waitedMs).toEqual(expect.any(Number));
    }
  });
});
