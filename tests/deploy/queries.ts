/** The queries of the Grafana dashboard and of the alert rules. */
import { parse } from 'yaml';
import { read } from '../repository/tree.js';

export interface Query {
  readonly title: string;
  readonly expr: string;
}

interface Dashboard {
  readonly panels: readonly {
    readonly title: string;
    readonly targets?: readonly { readonly expr: string }[];
  }[];
}

interface Rules {
  readonly groups: readonly {
    readonly rules: readonly { readonly alert: string; readonly expr: string; readonly labels: object }[];
  }[];
}

const dashboard = JSON.parse(read('deploy/grafana/holdfast.json')) as Dashboard;

export const panels: readonly Query[] = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({ title, expr })),
);

export const alerts: readonly Query[] = (parse(read('deploy/prometheus/alerts.yaml')) as Rules).groups
  .flatMap(({ rules }) => rules)
  .map(({ alert, expr }) => ({ title: alert, expr }));

/** With the variables that Grafana fills in. */
export const filled = (expr: string): string =>
  expr.replaceAll('$job', 'holdfast').replaceAll('$__rate_interval', '30s');

/** One of everything that is counted: series with labels are there only from then on. */
export async function useEverything(
  url: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  const act = async (what: string, body: object): Promise<{ readonly hold: string }> => {
    const answer = await fetch(`${url}/v2/locks/shop/stock/${what}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
    return (await answer.json()) as { hold: string };
  };
  const { hold } = await act('acquire', { ttl: '30s' });
  await act('acquire', { ttl: '30s' });
  await act('release', { hold });
  await act('renew', { hold, ttl: '30s' });
  const evicted = await act('acquire', { ttl: '30s' });
  await act('evict', {});
  await act('release', { hold: evicted.hold });
  await act('acquire', { ttl: '1s' });
}
