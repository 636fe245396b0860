import { available, startDynamodb, startNats, startPostgres, startRedis } from 'holdfast-test-servers';
import { expect, it } from 'vitest';
import { usePlace } from '../cli/holdfast.js';
import { blocks } from '../repository/markdown.js';

const place = usePlace();

/** Without what differs from run to run. */
function outline(report: string): readonly string[] {
  const lines = report.trim().split('\n').slice(1);
  return lines.map((line) => line.replace(/±?[\d.]+ ?ms/g, 'N ms').replace(/ahead of|behind/, 'off'));
}

async function examine(page: string, url: string): Promise<void> {
  const shown = blocks.find((block) => block.page === page && /^ +good +Reachable/m.test(block.code));
  const { status, stdout } = await place.run(['doctor', '--store', url]);
  expect(status).toBe(0);
  expect(outline(shown?.code ?? '')).toEqual(outline(stdout));
}

it.runIf(available('redis'))(
  'docs/stores/redis.md shows what doctor says of a Redis that writes nothing to disk',
  async () => {
    const server = await startRedis({ own: true });
    try {
      await examine('docs/stores/redis.md', server.url);
    } finally {
      await server.stop();
    }
  },
);

it.runIf(available('postgres'))(
  'docs/stores/postgres.md shows what doctor says of a new database',
  async () => {
    const server = await startPostgres({ own: true, fsync: true });
    try {
      const url = await server.createDatabase();
      expect((await place.run(['migrate', '--store', url])).status).toBe(0);
      await examine('docs/stores/postgres.md', url);
    } finally {
      await server.stop();
    }
  },
);

it.runIf(available('nats', { own: true }))(
  'docs/stores/nats.md shows what doctor says of one server as it comes',
  async () => {
    const server = await startNats({ own: true });
    try {
      await examine('docs/stores/nats.md', server.url);
    } finally {
      await server.stop();
    }
  },
);

it.runIf(available('dynamodb', { own: true }))(
  'docs/stores/dynamodb.md shows what doctor says of DynamoDB Local',
  async () => {
    const server = await startDynamodb({ own: true });
    try {
      const url = `dynamodb://local:local@eu-west-1/holdfast?endpoint=${server.url}`;
      expect((await place.run(['migrate', '--store', url])).status).toBe(0);
      await examine('docs/stores/dynamodb.md', url);
    } finally {
      await server.stop();
    }
  },
);
