/** examples/patterns/fastify.js: two instances as two processes, on one SQLite file. */
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createLocks, type Locks, openStore } from 'holdfast';
import { available, startRedis } from 'holdfast-test-servers';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { isAlive } from '../cli/holdfast.js';
import { atTheEnd, clearScene, freshFolder, until } from '../scene.js';
import { Child } from '../sqlite/child.js';

const PROGRAM = new URL('../../examples/patterns/fastify.js', import.meta.url);
/** A deployment that fails when another one runs, and goes on until it is allowed to end. */
const DEPLOY = `#!/bin/sh
mkdir running || exit 1
echo $$ > pid
for i in $(seq 600); do test -e may-end && break; sleep 0.05; done
rmdir running && echo "deployed $1"
`;

let folder: string;
let locks: Locks;

beforeEach(async () => {
  folder = freshFolder();
  locks = createLocks(await openStore(`sqlite:${join(folder, 'locks.db')}`), { owner: 'operator' });
  atTheEnd(() => locks.close({ drain: 0 }));
  writeFileSync(join(folder, 'deploy'), DEPLOY);
  chmodSync(join(folder, 'deploy'), 0o755);
});
afterEach(clearScene);

const isDeploying = (): boolean => existsSync(join(folder, 'pid'));
const allowToEnd = (): void => writeFileSync(join(folder, 'may-end'), '');

async function startInstance(
  store = 'sqlite:locks.db',
): Promise<{ readonly child: Child; readonly url: string }> {
  const child = new Child(PROGRAM, [], ['env', '-C', folder, 'PORT=0', `HOLDFAST_STORE=${store}`]);
  atTheEnd(() => child.kill());
  const addressIn = (line: string): string | undefined => /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];
  await until(() => child.lines.some(addressIn), 'an instance listens');
  return { child, url: child.lines.map(addressIn).find(Boolean) ?? '' };
}

const deploy = (url: string, site: string): Promise<Response> =>
  fetch(`${url}/deploy/${site}`, { method: 'POST' });

it('one instance deploys, and the other answers 409 with who does', async () => {
  const [one, other] = await Promise.all([startInstance(), startInstance()]);
  const deployment = deploy(one.url, 'shop');
  await until(isDeploying, 'the deployment runs');

  const refused = await deploy(other.url, 'shop');
  expect(refused.status).toBe(409);
  const { holders } = (await refused.json()) as { readonly holders: readonly { readonly owner: string }[] };
  expect(holders).toMatchObject([{ owner: expect.stringContaining(`:${one.child.pid}`) }]);

  allowToEnd();
  const deployed = await deployment;
  expect([deployed.status, await deployed.text()]).toEqual([200, 'deployed shop\n']);
  expect((await deploy(other.url, 'shop')).status).toBe(200);
  expect((await deploy(other.url, '--help')).status).toBe(404);
});

it('of many requests to both, those that are served never overlap', async () => {
  allowToEnd();
  const instances = await Promise.all([startInstance(), startInstance()]);
  const answers = await Promise.all(
    Array.from({ length: 10 }).flatMap(() => instances.map(({ url }) => deploy(url, 'shop'))),
  );
  const statuses = answers.map(({ status }) => status);
  // A deployment beside another one fails, which is a 500.
  expect(statuses.filter((status) => status !== 409 && status !== 200)).toEqual([]);
  expect(statuses).toContain(200);
  await Promise.all(answers.map((answer) => answer.arrayBuffer()));
});

it('an evicted deployment is stopped', async () => {
  const { url } = await startInstance();
  const deployment = deploy(url, 'shop');
  await until(isDeploying, 'the deployment runs');
  expect(await locks.evict('deploy:shop')).toBe(1);
  expect((await deployment).status).toBe(500);
  const pid = Number(readFileSync(join(folder, 'pid'), 'utf8'));
  await until(() => !isAlive(pid), 'the command is gone');
});

// On Redis, as a connection that is not closed would keep the process alive.
it.runIf(available('redis'))(
  'at SIGTERM the request in hand is answered, the locks are closed, and the process ends',
  async () => {
    const redis = await startRedis();
    atTheEnd(() => redis.stop());
    const { child, url } = await startInstance(redis.url);
    const deployment = deploy(url, 'shop');
    await until(isDeploying, 'the deployment runs');
    child.signal('SIGTERM');
    allowToEnd();
    expect((await deployment).status).toBe(200);
    expect(await child.finish(60_000)).toBe(0);
  },
);
