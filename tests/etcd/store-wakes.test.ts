/** Wake-ups: the watch survives compaction, a restart and the loss of its endpoint. */
import { etcdClient, etcdStore } from 'holdfast/etcd';
import type { Store } from 'holdfast/protocol';
import { available, type EtcdServer, startEtcd, startProxy } from 'holdfast-test-servers';
import { afterAll, afterEach, beforeAll, describe, it } from 'vitest';
import { atTheEnd, clearScene, until } from '../scene.js';
import { ask, putValue } from './store-scene.js';

describe.runIf(available('etcd', { own: true }))('wake-ups of etcd', () => {
  let server: EtcdServer;

  beforeAll(async () => {
    server = await startEtcd({ own: true });
  });
  afterEach(clearScene);
  afterAll(() => server?.stop());

  /** A store that listens, and what it hears. */
  async function listening(
    ...endpoints: readonly string[]
  ): Promise<{ store: Store; heard: string[]; states: boolean[] }> {
    const store = etcdStore(etcdClient({ endpoints }));
    const heard: string[] = [];
    const states: boolean[] = [];
    const stop = await store.listen?.(
      'mine',
      (key, why) => heard.push(`${why}:${key}`),
      (isListening) => states.push(isListening),
    );
    atTheEnd(async () => {
      await stop?.();
      await store.close();
    });
    return { store, heard, states };
  }

  /** As another process wakes it. */
  const wake = (key: string): Promise<unknown> => putValue(server.url, 'holdfast/w/mine/turn', key);

  it('go on through the loss of the connection, with those that came meanwhile', async () => {
    const proxy = await startProxy(server);
    atTheEnd(() => proxy.stop());
    const { heard, states } = await listening(`http://${proxy.host}:${proxy.port}`);
    await wake('one');
    await until(() => heard.includes('turn:one'), 'it hears the first');
    proxy.cut();
    await until(() => states.includes(false), 'it notices');
    await wake('two');
    proxy.pass();
    await until(() => states.at(-1) === true, 'it listens again');
    await until(() => heard.includes('turn:two'), 'it hears what came meanwhile');
  });

  it('go on when the history that it missed is compacted', async () => {
    const proxy = await startProxy(server);
    atTheEnd(() => proxy.stop());
    const { heard, states } = await listening(`http://${proxy.host}:${proxy.port}`);
    proxy.cut();
    await until(() => states.includes(false), 'it notices');
    await wake('lost');
    await wake('lost, too');
    const { header } = await ask<{ header: { revision: string } }>(server.url, '/v3/kv/range', {
      key: 'AA==',
    });
    await ask(server.url, '/v3/kv/compaction', { revision: header.revision, physical: true });
    proxy.pass();
    await until(() => states.at(-1) === true, 'it listens again');
    await until(async () => {
      await wake('later');
      return heard.includes('turn:later');
    }, 'it hears the next');
  });

  it('go on through another endpoint', async () => {
    const proxy = await startProxy(server);
    atTheEnd(() => proxy.stop());
    const { store, heard } = await listening(`http://${proxy.host}:${proxy.port}`, server.url);
    proxy.hang();
    // Waiters ask in any case: a command without an answer is what shows that the endpoint is gone.
    await until(
      () =>
        store.read('nobody').then(
          () => true,
          () => false,
        ),
      'the other endpoint answers',
    );
    await until(async () => {
      await wake('there');
      return heard.includes('turn:there');
    }, 'it hears');
  });

  it('go on after a restart of the server', async () => {
    const { heard, states } = await listening(server.url);
    await server.kill();
    await until(() => states.includes(false), 'it notices');
    await server.restart();
    await until(async () => {
      const sent = await wake('back').then(
        () => true,
        () => false,
      );
      return sent && heard.includes('turn:back');
    }, 'it hears');
  });
});
