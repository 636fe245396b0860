import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { available, promtool, startPrometheus } from 'holdfast-test-servers';
import { afterEach, describe, expect, it } from 'vitest';
import { usePlace } from '../cli/holdfast.js';
import { blocks } from '../repository/markdown.js';
import { run } from '../repository/shell.js';
import { root } from '../repository/tree.js';
import { atTheEnd, clearScene, until } from '../scene.js';
import { serve } from '../service/served.js';
import { alerts, filled, panels, useEverything } from './queries.js';

const place = usePlace();
afterEach(clearScene);

const folder = join(root, 'deploy', 'prometheus');
const scrape = blocks.find(
  ({ page, language }) => page === 'docs/service/operating.md' && language === 'yaml',
);

describe.runIf(available('prometheus'))('promtool', () => {
  it('finds nothing wrong with the alert rules', async () => {
    expect(await run(promtool(), ['check', 'rules', 'alerts.yaml'], { cwd: folder })).toContain(
      `SUCCESS: ${alerts.length} rules found`,
    );
  });

  it('sees each alert fire when it should, and none while all is well', async () => {
    expect(await run(promtool(), ['test', 'rules', 'alerts.test.yaml'], { cwd: folder })).toContain(
      'SUCCESS',
    );
  });
});

interface Reply<T> {
  readonly status: string;
  readonly data: T;
  readonly error?: string;
}

interface Rule {
  readonly name: string;
  readonly health: string;
  readonly state: string;
}

describe.runIf(available('prometheus'))('Prometheus with the configuration of the page', () => {
  it('scrapes a service with an API key, loads the rules, and answers every panel of the dashboard', async () => {
    const keys = join(place.folder, 'keys.json');
    const create = async (name: string, rights: string): Promise<string> =>
      (await place.run(['api-key', 'create', name, '--rights', rights, '--api-keys', keys])).stdout.trim();
    const admin = { authorization: `Bearer ${await create('admin', 'admin:*')}` };
    writeFileSync(join(place.folder, 'holdfast.key'), await create('prometheus', 'read:*'));
    const { url, running } = await serve(place, ['--api-keys', keys]);

    // Only the places and the times of the page are changed.
    const config = (scrape?.code ?? '')
      .replace('/etc/prometheus/holdfast-alerts.yaml', join(folder, 'alerts.yaml'))
      .replace('/etc/prometheus/holdfast.key', join(place.folder, 'holdfast.key'))
      .replace('locks.internal:8080', new URL(url).host)
      .replaceAll('15s', '1s');
    writeFileSync(join(place.folder, 'prometheus.yml'), config);
    await run(promtool(), ['check', 'config', 'prometheus.yml'], { cwd: place.folder });

    const prometheus = await startPrometheus(config);
    atTheEnd(() => prometheus.stop());
    const ask = async <T>(path: string): Promise<T> => {
      const reply = (await (await fetch(`${prometheus.url}/api/v1/${path}`)).json()) as Reply<T>;
      if (reply.status !== 'success') throw new Error(`${path}: ${reply.error}`);
      return reply.data;
    };
    const hasAnswer = async (expr: string): Promise<boolean> => {
      const path = `query?query=${encodeURIComponent(filled(expr))}`;
      return (await ask<{ readonly result: readonly object[] }>(path)).result.length > 0;
    };
    const rulesOf = async (): Promise<readonly Rule[]> =>
      (
        await ask<{ readonly groups: readonly { readonly rules: readonly Rule[] }[] }>('rules')
      ).groups.flatMap(({ rules }) => rules);

    // A store that always answers leaves this one empty.
    const [silent, spoken] = [panels.filter(isOfFailures), panels.filter((panel) => !isOfFailures(panel))];
    for (const { expr } of silent) expect(await hasAnswer(expr)).toBe(false);
    for (const { title, expr } of spoken) {
      await until(async () => {
        await useEverything(url, admin);
        return await hasAnswer(expr);
      }, `"${title}" has data for ${expr}`);
    }
    // As the variable of the dashboard asks.
    expect(await ask('label/job/values?match[]=holdfast_held')).toEqual(['holdfast']);

    const isLoaded = async (): Promise<boolean> => (await rulesOf()).every(({ health }) => health === 'ok');
    await until(isLoaded, 'every rule was evaluated');
    expect((await rulesOf()).map(({ name }) => name)).toEqual(alerts.map(({ title }) => title));
    running.kill('SIGTERM');
    await running.ended;
    const isNoticed = async (): Promise<boolean> =>
      (await rulesOf()).some(({ name, state }) => name === 'HoldfastDown' && state !== 'inactive');
    await until(isNoticed, 'the end of the service is noticed');
  });
});

function isOfFailures({ expr }: { readonly expr: string }): boolean {
  return expr.includes('outcome="unknown"');
}
