/** Users of etcd: logging in, and what is said where something is missing. */
import { createLocks, openStore, UnsupportedError } from 'holdfast';
import { etcdClient, etcdStore } from 'holdfast/etcd';
import { available, type EtcdServer, startEtcd } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pause } from '../scene.js';
import { ask, claimOf, say, tapped } from './store-scene.js';

const encoded = (text: string): string => Buffer.from(text).toString('base64');

describe.runIf(available('etcd', { own: true }))('users of etcd', () => {
  let server: EtcdServer;
  const login = { user: 'locks', password: 'p@ss/word' };

  beforeAll(async () => {
    server = await startEtcd({ args: ['--auth-token-ttl', '2'] });
    const { url } = server;
    await ask(url, '/v3/auth/user/add', { name: 'root', password: 'root' });
    await ask(url, '/v3/auth/user/grant', { user: 'root', role: 'root' });
    await ask(url, '/v3/auth/role/add', { name: 'locks' });
    const perm = { permType: 'READWRITE', key: encoded('holdfast/'), range_end: encoded('holdfast0') };
    await ask(url, '/v3/auth/role/grant', { name: 'locks', perm });
    await ask(url, '/v3/auth/user/add', { name: login.user, password: login.password });
    await ask(url, '/v3/auth/user/grant', { user: 'locks', role: 'locks' });
    await ask(url, '/v3/auth/enable');
  });
  afterAll(() => server?.stop());

  it('a user with rights on the prefix has locks, wake-ups and a probe; its login is renewed when it expires', async () => {
    const tap = tapped({ endpoints: [server.url], ...login });
    const locks = createLocks(tap.store);
    await (await locks.acquire('k')).release();
    expect(tap.calls.filter((path) => path === 'auth/authenticate')).toHaveLength(1);
    // Simple tokens of etcd expire when they are not used.
    await pause(4_500);
    await (await locks.acquire('k')).release();
    expect(tap.calls.filter((path) => path === 'auth/authenticate').length).toBeGreaterThan(1);
    const heard: string[] = [];
    const stop = await tap.store.listen?.('mine', (key) => heard.push(key));
    await stop?.();
    const { findings, server: name } = await tap.store.probe();
    expect(name).toMatch(/^etcd 3\./);
    expect(findings.map(({ text }) => text)).toContainEqual(expect.stringMatching(/^One member/));
    await locks.close();
  });

  it('a URL with user and password', async () => {
    const { host, port } = server;
    const store = await openStore(`etcd://locks:p%40ss%2Fword@${host}:${port}/holdfast`);
    expect(await say(store, claimOf('url', 'p'))).toMatchObject({ kind: 'granted' });
    await store.close();
  });

  it('a wrong password, no user, and missing rights are refused in words', async () => {
    const endpoints = [server.url];
    const wrong = etcdStore(etcdClient({ endpoints, user: 'locks', password: 'guess' }));
    await expect(say(wrong, claimOf('k', 'p'))).rejects.toThrow(/refuses this user name and password/);
    const nobody = etcdStore(etcdClient({ endpoints }));
    await expect(say(nobody, claimOf('k', 'p'))).rejects.toThrow(/user name/);
    const elsewhere = etcdStore(etcdClient({ endpoints, ...login }), { prefix: 'elsewhere/' });
    await expect(say(elsewhere, claimOf('k', 'p'))).rejects.toThrow(UnsupportedError);
    await expect(say(elsewhere, claimOf('k', 'p'))).rejects.toThrow(/permission denied/);
  });

  it('a user for a server without users is no hindrance', async () => {
    const plain = await startEtcd();
    const store = etcdStore(etcdClient({ endpoints: [plain.url], ...login }));
    expect(await say(store, claimOf(`k${Date.now()}`, 'p'))).toMatchObject({ kind: 'granted' });
    await store.close();
    await plain.stop();
  });
});
