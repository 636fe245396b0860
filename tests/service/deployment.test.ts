import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { memoryStore } from 'holdfast/memory';
import { createService } from 'holdfast-service';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { read } from '../repository/tree.js';

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
    const ask = (port: string): Promise<unknown> =>
      promisify(execFile)(process.execPath, words, { env: { HOLDFAST_PORT: port } });
    await ask(new URL(url).port);
    await expect(ask('1')).rejects.toMatchObject({ code: 1 });
  });

  it('says that it was not run yet, as the compose file does', () => {
    for (const text of [dockerfile, read('packages/service/compose.yaml')])
      expect(text).toContain('NOT YET RUN');
  });
});
