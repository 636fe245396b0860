/** The service on layouts of other software that has no namespaces: its locks are those of the namespace `default`. */
import { migrationOf } from 'holdfast';
import { available, startDynamodb, startNats, startPostgres } from 'holdfast-test-servers';
import { afterEach, describe, expect, it } from 'vitest';
import { configFrom } from '../../src/config/index.js';
import { serve } from '../../src/serve.js';
import { atTheEnd, callAt, clearScene } from '../scene.js';

afterEach(clearScene);

interface Place {
  readonly layout: string;
  readonly needs: Parameters<typeof available>[0];
  /** The URL of a store without the layout. */
  start(): Promise<string>;
}

const onDynamodb = async (): Promise<string> => {
  const server = await startDynamodb();
  atTheEnd(() => server.stop());
  const table = `served-${Math.random().toString(36).slice(2)}`;
  return `dynamodb://holdfast:holdfast@eu-central-1/${table}?endpoint=${server.url}&`;
};

const PLACES: readonly Place[] = [
  {
    layout: 'distributed-locks',
    needs: 'postgres',
    async start() {
      const server = await startPostgres();
      atTheEnd(() => server.stop());
      return `${await server.createDatabase()}?`;
    },
  },
  {
    layout: 'cloops',
    needs: 'nats',
    async start() {
      const server = await startNats();
      atTheEnd(() => server.stop());
      return `${server.url}?`;
    },
  },
  { layout: 'single-table', needs: 'dynamodb', start: onDynamodb },
  { layout: 'dynamodb-lock-go', needs: 'dynamodb', start: onDynamodb },
];

describe.each(PLACES)('the service on the layout $layout', ({ layout, needs, start }) => {
  it.runIf(available(needs))(
    'starts, has the locks of `default`, and says that there are no others',
    async () => {
      const store = `${await start()}layout=${layout}`;
      await (await migrationOf(store)).apply();
      const flags = { port: '0', 'log-level': 'silent', store };
      const running = await serve(configFrom({ flags, defaultStore: () => 'memory:' }));
      atTheEnd(() => running.close());
      const post = (path: string, body: object) => callAt(running.url, 'POST', path, body);
      const get = (path: string) => callAt(running.url, 'GET', path);
      expect((await get('/readyz')).status).toBe(200);
      const granted = await post('/v2/locks/default/job/acquire', { ttl: '30s', owner: 'ann' });
      expect(granted.status).toBe(200);
      expect((await get('/v2/locks/default/job')).body.holders).toMatchObject([{ owner: 'ann' }]);
      expect((await get('/v2/locks')).body.locks).toMatchObject([{ key: 'default/job' }]);
      const { hold } = granted.body;
      expect((await post('/v2/locks/default/job/renew', { hold, ttl: '30s' })).status).toBe(200);
      expect((await post('/v2/locks/default/job/release', { hold })).body.held).toBe(true);
      const elsewhere = await post('/v2/locks/billing/job/acquire', { ttl: '30s' });
      expect(elsewhere.body).toMatchObject({ code: 'unsupported' });
      expect(elsewhere.body.detail).toMatch(/has no namespaces.*"default"/);
    },
  );
});
