/** The contract on stores that are servers, in real time. */
import { DynamoDB } from '@aws-sdk/client-dynamodb';
import { migrationOf, openStore, type Store } from 'holdfast';
import { createTable, dynamodbStore } from 'holdfast/dynamodb';
import { lockServiceCentral } from 'holdfast/dynamodb/layouts';
import { available, startDynamodb, startNats, startPostgres, startRedis } from 'holdfast-test-servers';
import { afterAll, describe, expect, it } from 'vitest';
import { clearScene } from '../scene.js';
import { begin, type Scene } from './scene.js';
import { follow, isForRealTime, type Step, TABLE } from './table.js';

interface Place {
  readonly needs: Parameters<typeof available>[0];
  /** Starts the server; gives what opens a store on it. */
  start(): Promise<{ open(): Promise<Store>; stop(): Promise<unknown> }>;
  canFollow(steps: readonly Step[]): boolean;
}

/** NATS knows the time to some milliseconds. */
const DOUBT_MS = 100;

const PLACES: Readonly<Record<string, Place>> = {
  Redis: {
    needs: 'redis',
    async start() {
      const server = await startRedis();
      return { open: () => openStore(`redis://${server.host}:${server.port}`), stop: () => server.stop() };
    },
    canFollow: isForRealTime,
  },
  PostgreSQL: {
    needs: 'postgres-15',
    async start() {
      const server = await startPostgres();
      await (await migrationOf(server.url)).apply();
      return { open: () => openStore(server.url), stop: () => server.stop() };
    },
    canFollow: isForRealTime,
  },
  'NATS JetStream': {
    needs: 'nats',
    async start() {
      const server = await startNats();
      await (await migrationOf(server.url)).apply();
      return { open: () => openStore(server.url), stop: () => server.stop() };
    },
    canFollow: isForRealTime,
  },
  // The table and the records of the service whose contract this is.
  'DynamoDB, in the layout lock-service-central': {
    needs: 'dynamodb',
    async start() {
      const server = await startDynamodb();
      const credentials = { accessKeyId: 'local', secretAccessKey: 'local' };
      const client = new DynamoDB({ endpoint: server.url, region: 'local', credentials });
      const options = { table: 'locks', layout: lockServiceCentral } as const;
      await createTable(client, options);
      const stop = async (): Promise<void> => {
        client.destroy();
        await server.stop();
      };
      return { open: async () => dynamodbStore(client, options), stop };
    },
    // Its time is an estimate: what is over there is so some time later.
    canFollow: (steps) => steps.every((step) => !('pass' in step)),
  },
};

for (const [name, { needs, start, canFollow }] of Object.entries(PLACES)) {
  describe.runIf(available(needs))(`the contract on ${name}`, () => {
    let server: ReturnType<Place['start']> | null = null;
    let locks = 0;

    /** Every test has a lock of its own. */
    const scene = async (): Promise<Scene> => {
      server ??= start();
      const store = await (await server).open();
      const { look, acquire1, renew1, release1, pass, ...rest } = await begin({ store });
      locks += 1;
      const end = `-${locks}`;
      const of = (lock: string): string => lock + end;
      return {
        ...rest,
        pass: (ms) => pass(ms + DOUBT_MS),
        look: (lock) => look(of(lock)),
        acquire1: (lock, ...more) => acquire1(of(lock), ...more),
        renew1: (lock, ...more) => renew1(of(lock), ...more),
        release1: (lock, instance) => release1(of(lock), instance),
      };
    };

    afterAll(async () => {
      await clearScene();
      await (await server)?.stop();
    });

    for (const [sentence, steps] of Object.entries(TABLE)) {
      if (!canFollow(steps)) continue;
      it.concurrent(sentence, async () => {
        await follow(await scene(), steps, false);
      });
    }

    it.concurrent('ten instances acquire at once: one gets it; ten renewals at once add ten times', async () => {
      const { acquire1, renew1, look } = await scene();
      const ten = Array.from({ length: 10 }, (_, at) => `instance-${at}`);
      const answers = await Promise.all(ten.map((instance) => acquire1('raced', instance, 60)));
      const winners = answers.filter(({ status }) => status === 200);
      expect(winners).toHaveLength(1);
      const { instanceId, expiry } = (winners[0]?.body ?? {}) as { instanceId: string; expiry: number };
      const renewed = await Promise.all(ten.map(() => renew1('raced', instanceId, 60)));
      const leases = renewed.map(({ body }) => body.leaseDuration as number).sort((a, b) => a - b);
      expect(leases).toEqual(ten.map((_, at) => 60 * (at + 2)));
      expect((await look('raced')).body.expiry).toBe(expiry + 600);
    });
  });
}
