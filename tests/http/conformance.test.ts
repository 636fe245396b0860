/** Every promise of a store, kept through a service in a process of its own. */
import { createLocks } from 'holdfast';
import { httpStore } from 'holdfast/http';
import { conformanceSuite, type Harness } from 'holdfast/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isLongRun } from '../long-run.js';
import { DatabaseSync } from '../sqlite/driver.js';
import { runSuite } from '../store-talk.js';
import { atTheEnd, clearScene, freshFile, ServiceProcess } from './scene.js';

const CASE_MS_MAX = 180_000;
const seed = Number(process.env.HOLDFAST_SEED ?? Math.floor(Math.random() * 2 ** 31));

afterAll(clearScene);

describe('through a service on memory', () => {
  const service = new ServiceProcess('memory');
  beforeAll(() => service.start());

  const harness: Harness = {
    name: 'HTTP on memory',
    open: async () => httpStore({ url: service.url }),
  };
  runSuite(harness, 100);
});

/** So many cases are run between two crashes of the service. */
const CASES_A_LIFE = 8;

describe.runIf(isLongRun)(
  `through a service on SQLite that is killed again and again (HOLDFAST_SEED=${seed})`,
  () => {
    const file = freshFile();
    const service = new ServiceProcess(file);
    const bystanders = [1, 2].map(() => () => createLocks(httpStore({ url: service.url })));
    const change = (sql: string, key: string): void => {
      const database = new DatabaseSync(file, { timeout: 10_000 });
      database.prepare(sql).run(key);
      database.close();
    };
    const harness: Harness = {
      name: 'HTTP on SQLite',
      open: async () => httpStore({ url: service.url }),
      async forget(key) {
        change('DELETE FROM holdfast_records WHERE key = ?', key);
      },
      async spoil(key) {
        change("UPDATE holdfast_records SET state = json_set(state, '$.version', 99) WHERE key = ?", key);
      },
    };

    let lease: { readonly held: boolean; readonly token: number; release(): Promise<unknown> };
    let next: Promise<{ readonly token: number; release(): Promise<unknown> }>;
    beforeAll(async () => {
      await service.start();
      const [holder, waiter] = bystanders.map((open) => open());
      if (!holder || !waiter) throw new Error('Two take part.');
      atTheEnd(() => Promise.allSettled([holder.close(), waiter.close()]));
      lease = await holder.acquire('bystanders', { ttl: '60s' });
      next = waiter.acquire('bystanders', { ttl: '60s', wait: '30m' });
    });

    const cases = conformanceSuite(harness, { sequences: 100, seed });
    for (const [index, { name, run }] of cases.entries()) {
      it(
        name,
        async () => {
          if (index % CASES_A_LIFE === CASES_A_LIFE - 1) await service.restart();
          await run();
        },
        CASE_MS_MAX,
      );
    }

    it('who held a lock all the while holds it still, and who waited all the while gets it next', async () => {
      expect(lease.held).toBe(true);
      await lease.release();
      const granted = await next;
      expect(granted.token).toBeGreaterThan(lease.token);
      await granted.release();
    });
  },
);
