import { connect } from '@nats-io/transport-node';
import { available, type NatsServer, startNats } from 'holdfast-test-servers';
import { afterEach, describe, expect, it } from 'vitest';
import { createLocks } from '../../packages/holdfast/src/locks.js';
import { migrationOf, openStore } from '../../packages/holdfast/src/open-store.js';
import { blocks } from '../repository/markdown.js';
import { useEverything } from './use-everything.js';

describe.runIf(available('nats', { own: true }))(
  'the rights that docs/stores/nats.md asks for are enough',
  () => {
    const page = blocks.filter((block) => block.page === 'docs/stores/nats.md');
    const [block] = page.filter(({ code }) => /^authorization:/.test(code));
    /** The page's own lines, for a server that lets an administrator in as well. */
    const asked = (block?.code ?? '').replace(/^authorization:/, '');
    let server: NatsServer;

    async function start(authorization: string): Promise<void> {
      const users = authorization.replace('users: [', 'users: [ { user: admin, password: admin }');
      server = await startNats({ config: { authorization: users, no_auth_user: 'admin' } });
    }
    afterEach(async () => server?.stop());
    const as = (user: string, options = ''): string =>
      `${server.url.replace('nats://', `nats://${user}@`)}/holdfast${options}`;

    it('for whoever uses the locks, once the bucket is made', async () => {
      await start(asked);
      const locks = as('locks:PASSWORD');
      await expect(openAndRead(locks)).rejects.toThrow(/lacks a permission.*STREAM\.CREATE\.KV_holdfast/s);
      expect(await (await migrationOf(as('admin:admin'))).apply()).toEqual({ from: 0, to: 1, notes: [] });
      await useEverything(await openStore(locks), await openStore(locks));
      expect(await (await migrationOf(locks)).apply()).toEqual({ from: 1, to: 1, notes: [] });
    });

    it('and for nothing else', async () => {
      await start(asked);
      await (await migrationOf(as('admin:admin'))).apply();
      await expect(openAndRead(as('locks:PASSWORD').replace('/holdfast', '/other'))).rejects.toThrow(
        /lacks a permission/,
      );
      const { host, port } = server;
      const connection = await connect({ servers: `${host}:${port}`, user: 'locks', pass: 'PASSWORD' });
      for (const subject of [
        '$JS.API.STREAM.DELETE.KV_holdfast',
        '$JS.API.STREAM.PURGE.KV_holdfast',
        'news',
      ]) {
        await expect(connection.request(subject, ''), subject).rejects.toThrow(/permission/i);
      }
      await connection.close();
    });

    it('with replies to a place of their own', async () => {
      await start(asked.replace('"_INBOX.>"', '"_INBOX_locks.>"'));
      await (await migrationOf(as('admin:admin'))).apply();
      const locks = as('locks:PASSWORD', '?inbox-prefix=_INBOX_locks');
      await useEverything(await openStore(locks), await openStore(locks));
      await expect(openAndRead(as('locks:PASSWORD'))).rejects.toThrow(/lacks a permission/);
    });

    it('and those that make the bucket too', async () => {
      await start(asked.replace('allow: [', 'allow: [ "$JS.API.STREAM.CREATE.KV_holdfast"'));
      expect(await (await migrationOf(as('locks:PASSWORD'))).apply()).toEqual({ from: 0, to: 1, notes: [] });
    });

    it('though without the right to wake, waiters find out by asking', async () => {
      await start(asked.replaceAll(/,? *"_HOLDFAST\.holdfast\.>"/g, ''));
      await (await migrationOf(as('admin:admin'))).apply();
      const [one, two] = [
        createLocks(await openStore(as('locks:PASSWORD'))),
        createLocks(await openStore(as('locks:PASSWORD'))),
      ];
      const lease = await one.acquire('job');
      const waiting = two.acquire('job');
      await lease.release();
      expect((await waiting).token).toBeGreaterThan(lease.token);
      const { findings } = await two.probe();
      expect(findings.filter(({ text }) => /Wake-ups may not be published/.test(text))).toHaveLength(1);
      await one.close();
      await two.close();
    });
  },
);

async function openAndRead(url: string): Promise<void> {
  const store = await openStore(url);
  try {
    await store.read('job');
  } finally {
    await store.close();
  }
}
