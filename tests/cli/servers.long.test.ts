import {
  available,
  type DynamodbServer,
  type NatsServer,
  type PostgresServer,
  type RedisServer,
  startDynamodb,
  startNats,
  startPostgres,
  startRedis,
} from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clientOf } from '../dynamodb/store-scene.js';
import { usePlace } from './holdfast.js';
import { nonBlockingPipes } from './shared-pipes.js';

const place = usePlace();

async function json(args: readonly string[]) {
  const { status, stdout, stderr } = await place.run([...args, '--json']);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return JSON.parse(stdout);
}

/** Every command but `run`, which waits for the store as long as for the lock. */
async function oneLine(args: readonly string[]): Promise<string> {
  const { status, stdout, stderr } = await place.run(args);
  expect({ status, stdout }).toEqual({ status: 69, stdout: '' });
  expect(stderr).toMatch(/^holdfast: [^\n]+\n$/);
  return stderr;
}

/** What every store has to do for the command, wherever the locks are. */
function worksOn(store: () => string, push: 'good' | 'note' = 'good'): void {
  it('runs a command under the lock, shows it, and keeps a second one out', async () => {
    const args = ['--store', store()];
    const holder = place.start([
      'run',
      'job',
      '--owner',
      'alice',
      ...args,
      '--',
      'sh',
      '-c',
      'echo in; read x',
    ]);
    await holder.said(/in/);
    expect(await json(['ls', ...args])).toMatchObject([{ key: 'job', holders: [{ owner: 'alice' }] }]);
    expect((await place.run(['inspect', 'job', ...args])).stdout).toMatch(/held by alice/);
    const second = await place.run(['run', 'job', '--wait', '0', ...args, '--', 'touch', 'ran']);
    expect(second.status).toBe(75);
    expect(second.stderr).toMatch(/held by alice/);
    holder.child.stdin?.end('x\n');
    expect((await holder.ended).status).toBe(0);
    expect(await json(['ls', ...args])).toEqual([]);
  });

  it.runIf(process.platform === 'linux')('leaves the pipes that it shares with others blocking', async () => {
    expect(await nonBlockingPipes(place, store())).toEqual([]);
  });

  it('takes the lock from its holder, which stops', async () => {
    const args = ['--store', store()];
    // Without push, it learns of it with its next renewal.
    const ttl = ['--ttl', push === 'good' ? '30s' : '3s'];
    const holder = place.start(['run', 'stuck', ...ttl, ...args, '--', 'sh', '-c', 'echo in; exec sleep 60']);
    await holder.said(/in/);
    expect(await json(['evict', 'stuck', '--yes', ...args])).toEqual({ key: 'stuck', evicted: 1 });
    expect((await holder.ended).status).toBe(76);
  });

  it('says what the server promises, and whether push works', async () => {
    const report = await json(['doctor', '--store', store()]);
    expect(report.ok).toBe(true);
    expect(report.checks).toContainEqual(expect.objectContaining({ name: 'push', level: push }));
    expect(report.checks).toContainEqual(
      expect.objectContaining({ name: 'shared', text: 'Shared: by everybody who can reach it.' }),
    );
    expect(report.checks.filter(({ name }: { name: string }) => name === 'promise').length).toBeGreaterThan(
      0,
    );
  });

  it('says that nobody is there in one line, without the password', async () => {
    const nowhere = store()
      .replace(/\/\/.*@|\/\//, '//me:hunter2@')
      .replace(/:\d+/, ':1');
    const running = place.run(['run', 'job', '--wait', '500ms', '--store', nowhere, '--', 'touch', 'ran']);
    const commands = [['ls'], ['inspect', 'job'], ['doctor']];
    for (const line of await Promise.all(commands.map((args) => oneLine([...args, '--store', nowhere])))) {
      expect(line).toMatch(/^holdfast: ([^ ]*: )?nothing listens at 127\.0\.0\.1:1: is the server running/);
      expect(line).not.toContain('hunter2');
    }
    const ran = await running;
    expect(ran.status).toBe(69);
    expect(ran.stderr).toMatch(/^holdfast: [^\n]*nothing listens[^\n]*\n$/);
    expect(ran.stderr).not.toContain('hunter2');
  });
}

describe.runIf(available('redis'))('holdfast on Redis', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis({ own: true });
  });
  afterAll(async () => server?.stop());

  worksOn(() => server.url.replace('localhost', '127.0.0.1'));

  it('lets through what the client writes to stderr', async () => {
    const { status, stderr } = await place.run(['ls', '--store', server.url], { DEBUG: 'ioredis:redis' });
    expect(status).toBe(0);
    expect(stderr).toMatch(/ioredis:redis status\[.*connect.*\n/);
  });

  it('says that the password is wrong', async () => {
    const url = server.url.replace('redis://', 'redis://me:hunter2@');
    const line = await oneLine(['doctor', '--store', url]);
    expect(line).toMatch(/refuses this user name and password/);
    expect(line).not.toContain('hunter2');
  });

  it('has nothing to migrate', async () => {
    const { status, stderr } = await place.run(['migrate', '--store', server.url]);
    expect(status).toBe(64);
    expect(stderr).toMatch(/^holdfast: redis:.*nothing to migrate.*\n$/);
  });
});

describe.runIf(available('postgres'))('holdfast on PostgreSQL', () => {
  let server: PostgresServer;
  let migrated = '';
  beforeAll(async () => {
    server = await startPostgres({ own: true });
    migrated = await server.createDatabase();
  });
  afterAll(async () => server?.stop());

  describe('migrate', () => {
    it('makes the schema, and says what it did', async () => {
      const first = await place.run(['migrate', '--store', migrated]);
      expect(first).toMatchObject({ status: 0, stderr: '' });
      expect(first.stdout).toMatch(
        /^Holdfast's tables and functions were created in the schema "holdfast", at version \d+\.\n$/,
      );
      const again = await place.run(['migrate', '--store', migrated]);
      expect(again.stdout).toMatch(/^The schema "holdfast" is at version \d+ already\.\n$/);
      const rights = await place.run(['migrate', '--store', migrated, '--supabase']);
      expect(rights.stdout).toMatch(
        / already\.\nRights on .* given to service_role, .* taken from anon.*\.\n$/,
      );
      const { from, to, schema } = await json(['migrate', '--store', migrated]);
      expect(from).toBe(to);
      expect(schema).toBe('holdfast');
    });

    it('is fine with four at once, in a schema of another name', async () => {
      const url = `${await server.createDatabase()}?schema=four`;
      const ended = await Promise.all([1, 2, 3, 4].map(() => place.run(['migrate', '--store', url])));
      expect(ended.map(({ status }) => status)).toEqual([0, 0, 0, 0]);
      expect(ended.filter(({ stdout }) => stdout.includes('were created'))).toHaveLength(1);
      expect(await json(['ls', '--store', url])).toEqual([]);
    });

    it('prints its SQL without a server', async () => {
      const { status, stdout, stderr } = await place.run([
        'migrate',
        '--print',
        '--store',
        'postgres://nowhere.invalid/db?schema=mine',
      ]);
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
      expect(stdout).toContain('"mine"');
      const supabase = await place.run([
        'migrate',
        '--print',
        '--supabase',
        '--store',
        'postgres://nowhere.invalid/db',
      ]);
      expect(supabase.stdout).toMatch(/service_role/);
      expect(stdout).not.toMatch(/service_role/);
    });

    it('says that nobody is there', async () => {
      const line = await oneLine(['migrate', '--store', 'postgres://me:hunter2@127.0.0.1:1/db']);
      expect(line).toMatch(/me:\*\*\*@127\.0\.0\.1:1.*nothing listens/);
      expect(line).not.toContain('hunter2');
    });

    it('is for stores that need something at their server', async () => {
      const { status, stderr } = await place.run(['migrate']);
      expect(status).toBe(64);
      expect(stderr).toMatch(/^holdfast: sqlite:.*nothing to migrate.*\n$/);
    });
  });

  it('says that the schema is missing, and what to do', async () => {
    const url = await server.createDatabase();
    for (const args of [['ls'], ['run', 'job', '--', 'touch', 'ran'], ['doctor']]) {
      const [command = '', ...rest] = args;
      expect(await oneLine([command, '--store', url, ...rest])).toMatch(/holdfast migrate/);
    }
  });

  it('says that the database is missing', async () => {
    const line = await oneLine(['ls', '--store', server.url.replace(/\/postgres$/, '/nowhere')]);
    expect(line).toMatch(/database does not exist/);
  });

  worksOn(() => migrated);
});

describe.runIf(available('dynamodb', { own: true }))('holdfast on DynamoDB', () => {
  let server: DynamodbServer;
  let url = '';
  beforeAll(async () => {
    server = await startDynamodb({ own: true });
    url = `dynamodb://local:local@eu-west-1/holdfast?endpoint=${server.url}`;
  });
  afterAll(async () => server?.stop());

  it('says that the table is missing, and what to do', async () => {
    for (const args of [['ls'], ['run', 'job', '--', 'touch', 'ran'], ['doctor']]) {
      const [command = '', ...rest] = args;
      const line = await oneLine([command, '--store', url, ...rest]);
      expect(line).toMatch(/no table "holdfast".*holdfast migrate/);
    }
  });

  it('migrate makes the table, once, or prints a template of it', async () => {
    expect(await place.run(['migrate', '--store', url])).toMatchObject({
      status: 0,
      stdout: 'The table "holdfast" was created.\n',
      stderr: '',
    });
    expect((await place.run(['migrate', '--store', url])).stdout).toBe(
      'The table "holdfast" exists already.\n',
    );
    expect(await json(['migrate', '--store', url])).toEqual({ table: 'holdfast', from: 1, to: 1, notes: [] });
    const { status, stdout } = await place.run([
      'migrate',
      '--print',
      '--store',
      'dynamodb://eu-west-1/mine',
    ]);
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      Resources: { Locks: { Type: 'AWS::DynamoDB::Table', Properties: { TableName: 'mine' } } },
    });
  });

  it('migrate says what it found of a table that is there, and changes it only by name', async () => {
    const credentials = { accessKeyId: 'local', secretAccessKey: 'local' };
    const client = clientOf(server.url, { region: 'eu-west-1', credentials });
    await client.createTable({
      TableName: 'app',
      BillingMode: 'PAY_PER_REQUEST',
      AttributeDefinitions: ['PK', 'SK'].map((AttributeName) => ({ AttributeName, AttributeType: 'S' })),
      KeySchema: [
        { AttributeName: 'PK', KeyType: 'HASH' },
        { AttributeName: 'SK', KeyType: 'RANGE' },
      ],
    });
    const timeToLive = async () =>
      (await client.describeTimeToLive({ TableName: 'app' })).TimeToLiveDescription?.TimeToLiveStatus;
    const app = `${url.replace('/holdfast?', '/app?')}&layout=single-table`;
    const found = await place.run(['migrate', '--store', app]);
    expect(found).toMatchObject({ status: 0, stderr: '' });
    expect(found.stdout).toMatch(
      /^The table "app" exists already\.\nTime to live is off: .*--time-to-live.*whose "TTL" has passed\. Nothing was changed\.\n$/,
    );
    expect(await timeToLive()).toBe('DISABLED');
    expect((await place.run(['migrate', '--time-to-live', '--store', app])).stdout).toBe(
      'The table "app" exists already.\nTime to live was turned on, by the attribute "TTL".\n',
    );
    expect(await timeToLive()).toBe('ENABLED');
    expect((await place.run(['migrate', '--store', app])).stdout).toBe('The table "app" exists already.\n');
    client.destroy();
  });

  it('migrate says that nobody is there', async () => {
    const line = await oneLine([
      'migrate',
      '--store',
      url.replace(/:\d+$/, ':1').replace(':local@', ':hunter2@'),
    ]);
    expect(line).toMatch(/local:\*\*\*@eu-west-1.*nothing listens at 127\.0\.0\.1:1/);
    expect(line).not.toContain('hunter2');
  });

  worksOn(() => url, 'note');
});

describe.runIf(available('nats', { own: true }))('holdfast on NATS', () => {
  let server: NatsServer;
  let url = '';
  beforeAll(async () => {
    server = await startNats({ own: true });
    url = `${server.url}/locks`;
  });
  afterAll(async () => server?.stop());

  it('migrate makes the bucket, once, or prints the configuration of its stream', async () => {
    expect(await place.run(['migrate', '--store', url])).toMatchObject({
      status: 0,
      stdout: 'The bucket "locks" was created.\n',
      stderr: '',
    });
    expect((await place.run(['migrate', '--store', url])).stdout).toBe(
      'The bucket "locks" exists already.\n',
    );
    expect(await json(['migrate', '--store', url])).toEqual({ bucket: 'locks', from: 1, to: 1, notes: [] });
    const printed = await place.run([
      'migrate',
      '--print',
      '--store',
      'nats://nowhere.invalid/mine?replicas=3',
    ]);
    expect(printed.status).toBe(0);
    expect(JSON.parse(printed.stdout)).toMatchObject({ name: 'KV_mine', num_replicas: 3, storage: 'file' });
  });

  it('migrate says that nobody is there', async () => {
    const line = await oneLine(['migrate', '--store', 'nats://me:hunter2@127.0.0.1:1/locks']);
    expect(line).toMatch(/me:\*\*\*@127\.0\.0\.1:1.*nothing listens/);
    expect(line).not.toContain('hunter2');
  });

  it('says that the password is wrong', async () => {
    const guarded = await startNats({ own: true, login: { user: 'me', password: 'right' } });
    try {
      const line = await oneLine(['doctor', '--store', guarded.url.replace('right', 'hunter2')]);
      expect(line).toMatch(/refuses this user name and password/);
      expect(line).not.toContain('hunter2');
    } finally {
      await guarded.stop();
    }
  });

  worksOn(() => url);
});
