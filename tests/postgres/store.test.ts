/** What the PostgreSQL store is given, refuses and says. */

import { InvalidArgumentError, UnsupportedError } from 'holdfast';
import { type PostgresClient, postgresStore } from 'holdfast/postgres';
import { available, type PostgresServer, startPostgres } from 'holdfast-test-servers';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  claimOf,
  holdOf,
  migrated,
  OPENERS,
  openClient,
  openPool,
  openStoreWith,
  query,
  releaseOf,
  renewOf,
  say,
} from './store-scene.js';

describe('what postgresStore is given', () => {
  it.each([null, undefined, 'postgres://localhost', {}, { unsafe: () => [] }, () => undefined])(
    'refuses %o, and says what it needs',
    (client) => {
      expect(() => postgresStore(client as unknown as PostgresClient)).toThrow(InvalidArgumentError);
      expect(() => postgresStore(client as unknown as PostgresClient)).toThrow(/Pool or a Client of pg/);
    },
  );

  it('refuses options it does not know, and names that are none', () => {
    const pool = new pg.Pool();
    const wrong = (options: object): (() => unknown) => {
      return () => postgresStore(pool, options);
    };
    expect(wrong({ shema: 'x' })).toThrow(/no option "shema"/);
    expect(wrong({ schema: '' })).toThrow(InvalidArgumentError);
    expect(wrong({ schema: 'x'.repeat(64) })).toThrow(InvalidArgumentError);
    expect(wrong({ listener: 'no' })).toThrow(/listener has to be/);
  });

  it('pushes where it can listen, and only there', () => {
    const pool = new pg.Pool();
    expect(postgresStore(pool).traits.push).toBe(true);
    const deaf = postgresStore(pool, { listener: false });
    expect([deaf.traits.push, deaf.listen]).toEqual([false, undefined]);
    const wrapped = postgresStore({ query: (asked) => pool.query(asked) });
    expect(wrapped.traits.push).toBe(false);
    const told = postgresStore({ query: (asked) => pool.query(asked) }, { listener: () => new pg.Client() });
    expect(told.traits.push).toBe(true);
  });
});

describe.runIf(available('postgres'))('the PostgreSQL store', () => {
  let server: PostgresServer;
  let url: string;

  beforeAll(async () => {
    server = await startPostgres();
    url = await migrated(await server.createDatabase());
  });

  afterAll(() => server?.stop());

  it('says what to run where nothing was migrated', async () => {
    const store = await openStoreWith(await server.createDatabase());
    for (const ask of [() => say(store, claimOf('k', holdOf('p'))), () => store.read('k')]) {
      const error = await ask().then(
        () => null,
        (reason: unknown) => reason,
      );
      expect(error).toBeInstanceOf(UnsupportedError);
      expect(String(error)).toMatch(/holdfast migrate/);
    }
    const { findings } = await store.probe();
    expect(findings.map(({ text }) => text).join('\n')).toMatch(
      /not there yet: run `holdfast migrate --store URL`/,
    );
    await store.close();
  });

  it('says what is missing where the rights are', async () => {
    await query(url, "CREATE ROLE nobody_special LOGIN; COMMENT ON ROLE nobody_special IS 'test'");
    const asNobody = new URL(url);
    asNobody.username = 'nobody_special';
    const store = await openStoreWith(asNobody.href);
    const refused = say(store, claimOf('k', holdOf('p')));
    await expect(refused).rejects.toThrow(/may not use the schema "holdfast"/);
    await expect(refused).rejects.toBeInstanceOf(UnsupportedError);
    await store.close();
  });

  it('leaves a record of a newer format as it is, whatever is said to it', async () => {
    const store = await openStoreWith(url);
    const hold = holdOf('newer');
    await say(store, claimOf('newer', hold));
    await query(url, 'UPDATE holdfast.records SET version = 2 WHERE key = $1', ['newer']);
    const row = 'SELECT * FROM holdfast.records WHERE key = $1';
    const before = await query(url, row, ['newer']);
    const said = [claimOf('newer', holdOf('newer', 2)), renewOf('newer', hold), releaseOf('newer', hold)];
    for (const command of said) {
      await expect(say(store, command)).rejects.toThrow(/has format 2.*upgrade this one/);
    }
    await expect(store.read('newer')).rejects.toBeInstanceOf(UnsupportedError);
    expect(await query(url, row, ['newer'])).toEqual(before);
    await query(url, 'DELETE FROM holdfast.records WHERE key = $1', ['newer']);
    await store.close();
  });

  it.each(OPENERS)(
    'does not close $name, and refuses everything once closed itself',
    async ({ name, open }) => {
      const { client, end } = await open(url);
      const store = postgresStore(client);
      await say(store, claimOf(name, holdOf(name)));
      await store.close();
      await expect(say(store, releaseOf(name, holdOf(name)))).rejects.toBeInstanceOf(UnsupportedError);
      await expect(store.read(name)).rejects.toBeInstanceOf(UnsupportedError);
      await expect(store.probe()).rejects.toBeInstanceOf(UnsupportedError);
      const next = postgresStore(client);
      expect((await say(next, renewOf(name, holdOf(name)))).kind).toBe('renewed');
      await say(next, releaseOf(name, holdOf(name)));
      await next.close();
      await end();
    },
  );

  it.each(OPENERS)(
    'takes locks in a database that is serializable by default, with $name',
    async ({ open }) => {
      const strict = await migrated(await server.createDatabase());
      const name = new URL(strict).pathname.slice(1);
      await query(strict, `ALTER DATABASE "${name}" SET default_transaction_isolation = 'serializable'`);
      const [one, other] = [await openStoreWith(strict, open), await openStoreWith(strict, open)];
      let granted = 0;
      for (let round = 1; round <= 10; round++) {
        // Awkward texts, as these travel inside the statement.
        const owner = `it's \\ "quoted" $1 ; -- ${round}`;
        const replies = await Promise.all(
          [one, other].flatMap((store, index) =>
            store.apply([
              claimOf('same', holdOf(`p${index}`, round), { owner }),
              claimOf(`own-${index}`, holdOf(`p${index}`, round)),
            ]),
          ),
        );
        granted += replies.filter(({ kind }) => kind === 'granted').length;
        expect((await one.read('same'))?.holders.map((holder) => holder.owner)).toEqual([owner]);
        await Promise.all(
          [one, other].flatMap((store, index) =>
            ['same', `own-${index}`].flatMap((key) =>
              store.apply([releaseOf(key, holdOf(`p${index}`, round))]),
            ),
          ),
        );
      }
      expect(granted).toBe(30);
      const { findings } = await one.probe();
      expect(findings.map(({ text }) => text).join('\n')).toMatch(/serializable by default/);
      await Promise.all([one.close(), other.close()]);
    },
  );

  it('refuses a Client that is inside a transaction: the lock would be undone with it', async () => {
    const { client, end } = await openClient(url);
    const store = postgresStore(client);
    const user = client as pg.Client;
    await user.query('BEGIN');
    await expect(say(store, claimOf('inside', holdOf('inside')))).rejects.toThrow(/inside a transaction/);
    await user.query('ROLLBACK');
    expect((await say(store, claimOf('inside', holdOf('inside')))).kind).toBe('granted');
    await store.close();
    await end();
  });

  it('uses another schema where told, whatever its name', async () => {
    const schema = 'Some "odd" schema';
    const { client, end } = await openPool(url);
    await migrated(url, { schema });
    const [there, here] = [postgresStore(client, { schema }), postgresStore(client)];
    expect((await say(there, claimOf('schemas', holdOf('a')))).kind).toBe('granted');
    expect((await say(here, claimOf('schemas', holdOf('b')))).kind).toBe('granted');
    expect((await there.read('schemas'))?.holders).toHaveLength(1);
    await Promise.all([there.close(), here.close()]);
    await end();
  });

  it('probe tells in plain words what a crash and a failover cost', async () => {
    const store = await openStoreWith(url);
    const found = await store.probe();
    expect(found.server).toMatch(/^PostgreSQL \d+/);
    const texts = found.findings.map(({ text }) => text).join('\n');
    expect(texts).toMatch(/fsync is off/);
    expect(texts).toMatch(/a failover to one may forget the grants/);
    expect(texts).toMatch(/Time is the server's clock/);
    await store.close();
  });
});
