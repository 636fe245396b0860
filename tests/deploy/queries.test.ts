import { memoryStore } from 'holdfast/memory';
import { createService } from 'holdfast-service';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { read } from '../repository/tree.js';
import { alerts, panels, useEverything } from './queries.js';

const store = memoryStore();
const service = createService({ store });
let text = '';

beforeAll(async () => {
  const url = await service.listen();
  await useEverything(url);
  text = await (await fetch(`${url}/metrics`)).text();
});

afterAll(async () => {
  await service.close();
  await store.close();
});

/** Words of a query that are not words of its language, and not labels. */
const metricsIn = (expr: string): readonly string[] => expr.match(/\b(?:holdfast|process|nodejs)_\w+/g) ?? [];
/** What Prometheus adds itself. */
const OF_PROMETHEUS = /^(?:job|instance)$/;

describe('the Grafana dashboard and the alert rules', () => {
  it.each([...panels, ...alerts].filter(({ expr }) => !/\bup\{/.test(expr)))(
    '$title asks for what is counted',
    ({ expr }) => {
      const metrics = metricsIn(expr);
      expect(metrics, expr).not.toEqual([]);
      for (const metric of metrics) expect(text, expr).toMatch(new RegExp(`^${metric}[ {]`, 'm'));
    },
  );

  it('ask only by labels that these metrics have', () => {
    for (const { expr } of [...panels, ...alerts]) {
      const grouped = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, names = '']) => names.split(', '));
      const selected = [...expr.matchAll(/(\w+)(?:!=|=~|!~|=)"/g)].map(([, name = '']) => name);
      for (const label of [...grouped, ...selected].filter((name) => !OF_PROMETHEUS.test(name)))
        expect(text, expr).toMatch(new RegExp(`\\b${label}="`));
    }
  });

  it('ask only for bounds of histograms that there are', () => {
    for (const { expr } of alerts)
      for (const [, metric = '', bound = ''] of expr.matchAll(/(\w+_bucket)\{[^}]*le="([^"]+)"/g))
        expect(text, expr).toContain(`${metric}{le="${bound}"}`);
  });

  it('the dashboard shows every metric of the service', () => {
    const counted = [...text.matchAll(/^# TYPE (holdfast_\w+)/gm)].map(([, name = '']) => name);
    const all = panels.map(({ expr }) => expr).join('\n');
    expect(counted.filter((name) => !all.includes(name))).toEqual([]);
  });

  it('every alert has a test, and is explained', () => {
    const [tests, page] = [read('deploy/prometheus/alerts.test.yaml'), read('docs/service/operating.md')];
    for (const { title } of alerts) {
      expect(tests).toContain(`alertname="${title}"`);
      expect(page).toContain(`\`${title}\``);
    }
  });
});
