import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { validate } from 'dockerfile-utils';
import { memoryStore } from 'holdfast/memory';
import { createService } from 'holdfast-service';
import { describe, expect, it } from 'vitest';
import { usePlace } from '../cli/holdfast.js';
import { read } from '../repository/tree.js';
import { argumentsOf, isIgnored, text, variables, wordsOf } from './dockerfile.js';

const place = usePlace();

describe('the image', () => {
  it('is defined without a finding of the linter', () => {
    expect(validate(text)).toEqual([]);
    expect(validate(text.replace('WORKDIR /app', 'WORKDIR app'))).not.toEqual([]);
  });

  it('takes nothing from the repository that was installed, built or is secret', () => {
    const left = [
      'node_modules/a/index.js',
      'packages/a/dist/index.js',
      '.git/HEAD',
      'a/.env.local',
      'locks.db-wal',
    ];
    expect(left.filter((file) => !isIgnored(file))).toEqual([]);
    const taken = ['package-lock.json', '.gitignore', 'packages/holdfast/src/index.ts', 'deploy/Dockerfile'];
    expect(taken.filter(isIgnored)).toEqual([]);
  });

  it('has the clients in the versions that are tested', () => {
    const { devDependencies } = JSON.parse(read('package.json')) as {
      devDependencies: Record<string, string>;
    };
    const clients = [...argumentsOf('RUN').matchAll(/ (@?[a-z][\w/-]*)@(\d[\w.-]*)/g)];
    expect(clients.length).toBeGreaterThanOrEqual(5);
    for (const [, name = '', version] of clients)
      expect([name, devDependencies[name]]).toEqual([name, version]);
  });

  it('is healthy while the service answers, and only then', async () => {
    const store = memoryStore();
    const service = createService({ store });
    const { port } = new URL(await service.listen());
    const [program, ...words] = wordsOf('HEALTHCHECK');
    expect(program).toBe('node');
    const ask = (env: NodeJS.ProcessEnv): Promise<unknown> =>
      promisify(execFile)(process.execPath, words, { env });
    await ask({ HOLDFAST_PORT: port });
    await ask({ SERVER_PORT: port });
    await expect(ask({ HOLDFAST_PORT: '1' })).rejects.toMatchObject({ code: 1 });
    await service.close();
    await store.close();
  });

  it('takes the environment of LockServiceCentral, which none of its own variables outdoes', async () => {
    const { status, stdout, stderr } = await place.run(['serve', '--print-config'], {
      ...{ HOLDFAST_STORE: '', ...variables },
      ...{ SPRING_PROFILES_ACTIVE: 'dynamodb', LOCKER_DYNAMODB_REGION: 'eu-west-1', SERVER_PORT: '9090' },
      AUTHENTICATION_DISABLED: 'true',
    });
    expect([status, stderr]).toEqual([0, '']);
    expect(JSON.parse(stdout)).toMatchObject({
      ...{ store: 'dynamodb://eu-west-1/locks?layout=lock-service-central', port: 9_090 },
      ...{ host: '0.0.0.0', insecure: true },
    });
  });

  it('keeps its locks and its keys in the volume, and does not start open to others without a word', async () => {
    const own = { ...variables, HOLDFAST_STORE: '', HOLDFAST_AUDIT: '' };
    const shown = await place.run(['serve', '--print-config'], own);
    expect(JSON.parse(shown.stdout).store).toBe('sqlite:/data/holdfast/locks.db');
    const { status, stderr } = await place.run(['serve', '--port', '0'], {
      ...own,
      HOLDFAST_STORE: 'memory:',
    });
    expect([status, stderr]).toEqual([64, expect.stringContaining('insecure')]);
  });

  it('says that it was not built yet, and the compose file that it was not run', () => {
    expect(text).toContain('NOT YET BUILT');
    expect(read('deploy/compose.yaml')).toContain('NOT YET RUN');
  });
});
