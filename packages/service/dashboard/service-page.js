/** The page of the service: which store, how fast it answers, what it promises, and where else to look. */
import { link, make, setText } from './dom.js';
import { ask, session } from './service.js';

/** @typedef {import('./views.js').PageContext} PageContext */

export class Page {
  /** @param {PageContext} context */
  constructor(context) {
    this.context = context;
    this.title = 'Service';
    this.heading = make('h2', '', 'Service');
    this.state = make('p', 'muted', 'Asking the store…');
    this.facts = make('dl');
    this.findings = make('ul', 'findings');
    const ways = [
      link('metrics', 'Metrics'),
      link('v2/docs', 'API'),
      link('v2/openapi.json', 'OpenAPI document'),
      link('readyz', 'Readiness'),
    ];
    this.root = make(
      'div',
      'service-page',
      this.heading,
      make('section', 'inside', this.state, this.facts),
      make('section', 'inside', make('h3', '', 'What the store promises'), this.findings),
      make(
        'section',
        'inside',
        make('h3', '', 'More'),
        make('p', 'ways', ...ways.flatMap((way) => [way, ' '])),
      ),
    );
  }

  async refresh() {
    try {
      const { store, server, traits, findings } = await (await ask('v2/probe')).json();
      const { version, service, storeMs, principal } = await session('');
      const facts = {
        Version: version,
        Service: service,
        Store: server === store ? store : `${store}: ${server}`,
        Latency: storeMs === null ? 'not known yet' : `${storeMs} ms, the median of the last calls`,
        'Shared by': traits.shared,
        Clock: `${traits.clock}, off by ${traits.clockErrorMs} ms at most`,
        'You are': principal,
      };
      this.facts.replaceChildren(
        ...Object.entries(facts).flatMap(([name, text]) => [
          make('dt', '', name),
          make('dd', '', String(text)),
        ]),
      );
      const items = findings.map(
        (/** @type {{ level: 'good' | 'note' | 'warning', text: string }} */ { level, text }) =>
          make('li', level, make('b', '', level), ` ${text}`),
      );
      this.findings.replaceChildren(...items);
      setText(this.state, '');
    } catch (error) {
      this.context.failed(error, this.state);
    }
  }
}
