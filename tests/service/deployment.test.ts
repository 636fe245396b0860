import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { memoryStore } from 'holdfast/memory';
import { createService } from 'holdfast-service';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { usePlace } from '../cli/holdfast.js';
import { read } from '../repository/tree.js';

const place = usePlace();

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
}

const dashboard = JSON.parse(read('packages/service/grafana/holdfast.json')) as {
  readonly panels: readonly Panel[];
};

const store = memoryStore();
const service = createService({ store });
let url = '';
let text = '';

beforeAll(async () => {
  url = await service.listen();
  // Everything that is counted happens once: series with labels are there only from then on.
  const act = async (what: string, body: object): Promise<{ hold: string }> => {
    const answer = await fetch(`${url}/v2/locks/shop/stock/${what}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return (await answer.json()) as { hold: string };
  };
  const { hold } = await act('acquire', { ttl: '30s' });
  await act('acquire', { ttl: '30s' });
  await act('release', { hold });
  await act('renew', { hold, ttl: '30s' });
  await act('acquire', { ttl: '30s' });
  text = await (await fetch(`${url}/metrics`)).text();
});

afterAll(async () => {
  await service.close();
  await store.close();
});

/** Words of a query that are not words of its language, and not labels. */
function metricsIn(expr: string): readonly string[] {
  return expr.match(/\b(?:holdfast|process|nodejs)_\w+/g) ?? [];
}

describe('the Grafana dashboard', () => {
  const shown = dashboard.panels.filter(({ targets }) => targets !== undefined);

  it.each(shown.map((panel) => [panel.title, panel] as const))('%s asks for what is counted', (_, panel) => {
    for (const { expr } of panel.targets ?? []) {
      const metrics = metricsIn(expr);
      expect(metrics, expr).not.toEqual([]);
      for (const metric of metrics) expect(text, expr).toMatch(new RegExp(`^${metric}[ {]`, 'm'));
    }
  });

  it('asks only by labels that these metrics have', () => {
    for (const { expr } of shown.flatMap(({ targets }) => targets ?? [])) {
      const labels = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, names = '']) => names.split(', '));
      for (const label of labels) expect(text, expr).toMatch(new RegExp(`\\b${label}="`));
    }
  });

  it('shows every metric of the service', () => {
    const counted = [...text.matchAll(/^# TYPE (holdfast_\w+)/gm)].map(([, name = '']) => name);
    const asked = shown.flatMap(({ targets }) => targets ?? []).map(({ expr }) => expr);
    const all = asked.join('\n');
    expect(counted.filter((name) => !all.includes(name))).toEqual([]);
  });
});

describe('the image', () => {
  const dockerfile = read('packages/service/Dockerfile');

  it('has the clients in the versions that are tested', () => {
    const { devDependencies } = JSON.parse(read('package.json')) as {
      devDependencies: Record<string, string>;
    };
    const clients = [...dockerfile.matchAll(/ (@?[a-z][\w/-]*)@(\d[\w.-]*)/g)];
    expect(clients.length).toBe(5);
    for (const [, name = '', version] of clients)
      expect([name, devDependencies[name]]).toEqual([name, version]);
  });

  it('is healthy while the service answers, and only then', async () => {
    const [, command = '[]'] = /^HEALTHCHECK .* CMD (\[.*\])$/m.exec(dockerfile) ?? [];
    const [program, ...words] = JSON.parse(command) as string[];
    expect(program).toBe('node');
    const ask = (env: NodeJS.ProcessEnv): Promise<unknown> =>
      promisify(execFile)(process.execPath, words, { env });
    const { port } = new URL(url);
    await ask({ HOLDFAST_PORT: port });
    await ask({ SERVER_PORT: port });
    await expect(ask({ HOLDFAST_PORT: '1' })).rejects.toMatchObject({ code: 1 });
  });

  const variables = (): Record<string, string> => {
    const [, block = ''] = /^ENV ((?:.*\\\n)*.*)$/m.exec(dockerfile) ?? [];
    return Object.fromEntries([...block.matchAll(/(\w+)=(\S+)/g)].map(([, name, value]) => [name, value]));
  };

  it('takes the environment of LockServiceCentral, which none of its own variables outdoes', async () => {
    const { status, stdout, stderr } = await place.run(['serve', '--print-config'], {
      ...{ HOLDFAST_STORE: '', ...variables() },
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
    const own = { ...variables(), HOLDFAST_STORE: '', HOLDFAST_AUDIT: '' };
    const shown = await place.run(['serve', '--print-config'], own);
    expect(JSON.parse(shown.stdout).store).toBe('sqlite:/data/holdfast/locks.db');
    const { status, stderr } = await place.run(['serve', '--port', '0'], {
      ...own,
      HOLDFAST_STORE: 'memory:',
    });
    expect([status, stderr]).toEqual([64, expect.stringContaining('insecure')]);
  });

  it('says that it was not run yet, as the compose file does', () => {
    for (const text of [dockerfile, read('packages/service/compose.yaml')])
      expect(text).toContain('NOT YET RUN');
  });
});
