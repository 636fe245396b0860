import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { available, type ServerName, startNats, startPostgres, startRedis } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Running, until, usePlace } from '../cli/holdfast.js';
import { hasCommand, run } from '../repository/shell.js';
import { argumentsOf, Image, variables, wordsOf } from './dockerfile.js';
import { type Environment, environmentOf, workloads } from './pods.js';

const place = usePlace();
const folder = mkdtempSync(join(tmpdir(), 'holdfast-image-'));
const image = new Image(folder);

beforeAll(() => image.build(), 1_300_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** As the user of the image, who can write to /data and to nothing else of it. */
const [uid = '', gid = ''] = argumentsOf('USER').split(':');
const asUser =
  process.getuid?.() === 0 && hasCommand('setpriv')
    ? ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', '--']
    : [];

/** With the environment of the image, and no other. */
function start(args: readonly string[], environment: Environment): Running {
  const all = { ...variables, PATH: '/usr/bin:/bin', HOLDFAST_PORT: '0', ...environment };
  const settings = Object.entries(all).map(([name, value]) => `${name}=${image.outside(value)}`);
  const [, ...entry] = wordsOf('ENTRYPOINT').map((word) => image.outside(word));
  const [command = '', ...rest] = [...asUser, 'env', '-i', ...settings, process.execPath, ...entry, ...args];
  return place.startOther(command, rest);
}

async function addressOf({ child }: Running): Promise<string> {
  let said = '';
  child.stderr?.on('data', (chunk) => {
    said += chunk;
  });
  const [, port = ''] = await until(
    () => /holdfast: http:\/\/\S+:(\d+)/.exec(said),
    () => `the address, in: ${said}`,
  );
  return `http://127.0.0.1:${port}`;
}

const statusOf = async (url: string, headers: Environment = {}): Promise<number> =>
  (await fetch(url, { headers })).status;

describe('the image, its steps run outside a container', () => {
  it('starts with its own settings: alive, healthy, ready, and ends on TERM', async () => {
    const running = start(wordsOf('CMD'), { HOLDFAST_INSECURE: 'true' });
    const url = await addressOf(running);
    expect([await statusOf(`${url}/healthz`), await statusOf(`${url}/readyz`)]).toEqual([200, 200]);
    const [, ...check] = wordsOf('HEALTHCHECK');
    await run(process.execPath, check, { cwd: folder, env: { HOLDFAST_PORT: new URL(url).port } });
    expect(existsSync(image.outside('/data/holdfast/locks.db'))).toBe(true);
    running.kill('SIGTERM');
    expect((await running.ended).status).toBe(0);
  });

  it('does not start when everybody could use it', async () => {
    const { status, stderr } = await start(wordsOf('CMD'), {}).ended;
    expect([status, stderr]).toEqual([64, expect.stringContaining('insecure')]);
  });
});

/** A file of API keys where the secret is mounted: the group of the pod may read it. Returns an API key. */
async function mountKeys(file: string): Promise<string> {
  const own = '/data/keys.json';
  const made = await start(
    ['api-key', 'create', 'watcher', '--rights', 'read:*', '--api-keys', image.outside(own)],
    {},
  ).ended;
  expect([made.status, made.stderr]).toEqual([0, expect.any(String)]);
  mkdirSync(dirname(image.outside(file)), { recursive: true });
  await run('mv', [image.outside(own), image.outside(file)], { cwd: folder });
  chmodSync(image.outside(file), 0o440);
  return made.stdout.trim();
}

interface Server {
  readonly url: string;
  stop(): Promise<void>;
}

const SERVERS: readonly {
  readonly name: ServerName;
  readonly migrates: boolean;
  start(): Promise<Server>;
}[] = [
  { name: 'redis', migrates: false, start: () => startRedis({ own: true }) },
  { name: 'postgres', migrates: true, start: () => startPostgres({ own: true }) },
  { name: 'nats', migrates: true, start: () => startNats({ own: true }) },
];

describe.each(SERVERS)(
  'the image as the manifests run it, on $name',
  ({ name, migrates, start: startServer }) => {
    it.runIf(available(name, { own: true }))(
      'migrates the store, then serves whoever has an API key, and drains',
      async () => {
        const server = await startServer();
        const secret = { store: server.url };
        const [migration] = workloads.migration.spec.containers;
        const migrated = await start(migration.args, environmentOf(migration, secret)).ended;
        expect([migrated.status, migrated.stderr]).toEqual(
          migrates ? [0, ''] : [64, expect.stringContaining('nothing to migrate')],
        );

        const [service] = workloads.service.spec.containers;
        const environment = environmentOf(service, secret);
        const apiKey = await mountKeys(environment.HOLDFAST_API_KEYS ?? '');
        const running = start(service.args, environment);
        const url = await addressOf(running);
        for (const probe of [service.startupProbe, service.livenessProbe, service.readinessProbe])
          expect([probe, await statusOf(`${url}${probe?.httpGet.path}`)]).toEqual([probe, 200]);
        expect(await statusOf(`${url}/v2/locks`)).toBe(401);
        expect(await statusOf(`${url}/v2/locks`, { authorization: `Bearer ${apiKey}` })).toBe(200);
        running.kill('SIGTERM');
        expect((await running.ended).status).toBe(0);
        await server.stop();
      },
    );
  },
);
