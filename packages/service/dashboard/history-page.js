/** The page of the history: histograms, the most contended keys, and how holds ended. */
import { addressOf, keyElement, link, make, setText } from './dom.js';
import { pastHold, sourceText, span } from './past-holds.js';
import { ask } from './service.js';

/**
 * @typedef {{ upToMs: number | null, count: number }} Bucket
 * @typedef {{ key: string, contended: number, longestWaitMs: number, lost: number, expired: number, evicted: number }} KeySummary
 * @typedef {import('./views.js').PageContext} PageContext
 */

const ENDED = ['released', 'evicted', 'lost', 'expired', 'unknown'];
const REFRESH_S = 5;
const STEP = 100;
const LIMIT_MAX = 1_000;

export class Page {
  /**
   * @param {PageContext} context
   * @param {URLSearchParams} query
   */
  constructor(context, query) {
    this.context = context;
    this.namespace = query.get('namespace') ?? '';
    this.ended = query.get('ended') ?? '';
    this.limit = STEP;
    this.ticks = 0;
    this.title = 'History';
    this.heading = make('h2', '', this.namespace === '' ? 'History' : `History of ${this.namespace}`);
    this.counts = make('dl', 'counts');
    this.waits = make('div');
    this.holds = make('div');
    this.contended = make('div');
    this.losses = make('div');
    this.past = make('ol', 'past');
    this.state = make('p', 'muted', 'Reading the history…');
    this.source = make('p', 'muted');
    this.more = make('button', '', 'Show more');
    this.more.type = 'button';
    this.more.hidden = true;
    this.more.addEventListener('click', () => {
      this.limit = Math.min(this.limit + STEP, LIMIT_MAX);
      void this.refresh();
    });
    this.root = make(
      'div',
      'history-page',
      this.heading,
      ...(this.namespace === '' ? [] : [make('p', 'ways', link('#/history', 'All namespaces'))]),
      make('section', '', this.counts, this.source),
      make(
        'div',
        'pair',
        make('section', '', make('h3', '', 'Waits'), this.waits),
        make('section', '', make('h3', '', 'Holds'), this.holds),
        make('section', '', make('h3', '', 'Most contended'), this.contended),
        make('section', '', make('h3', '', 'Lost, expired or evicted'), this.losses),
      ),
      make('section', '', make('h3', '', 'Ended holds'), this.filter(), this.state, this.past, this.more),
    );
  }

  filter() {
    const ways = ['', ...ENDED].map((ended) => {
      const way = link(addressOf('history', { namespace: this.namespace, ended }), ended || 'all');
      if (ended === this.ended) way.ariaCurrent = 'true';
      return way;
    });
    const nav = make('nav', 'ways', ...ways.flatMap((way) => [way, ' ']));
    nav.ariaLabel = 'How they ended';
    return nav;
  }

  async refresh() {
    const namespace = this.namespace === '' ? '' : `&namespace=${encodeURIComponent(this.namespace)}`;
    const ended = this.ended === '' ? '' : `&ended=${encodeURIComponent(this.ended)}`;
    try {
      const [summary, page] = await Promise.all([
        ask(`v2/history/summary?${namespace.slice(1)}`).then((response) => response.json()),
        ask(`v2/history?limit=${this.limit}${namespace}${ended}`).then((response) => response.json()),
      ]);
      this.show(summary, page);
    } catch (error) {
      this.context.failed(error, this.state);
    }
  }

  /**
   * @param {any} summary
   * @param {import('./past-holds.js').HistoryPage} page
   */
  show(summary, page) {
    const facts = ['acquired', 'refused', ...ENDED].map((name) =>
      make('div', '', make('dt', '', name), make('dd', '', String(summary.counts[name]))),
    );
    this.counts.replaceChildren(...facts);
    setText(this.source, sourceText(page));
    this.waits.replaceChildren(histogram('How long acquires took', summary.waits));
    this.holds.replaceChildren(histogram('How long locks were held', summary.holds));
    this.contended.replaceChildren(
      keys(summary.contended, ({ contended, longestWaitMs }) => {
        return `${contended} times, longest wait ${span(longestWaitMs)}`;
      }),
    );
    this.losses.replaceChildren(
      keys(summary.lost, ({ lost, expired, evicted }) => {
        return `${lost} lost, ${expired} expired, ${evicted} evicted`;
      }),
    );
    this.past.replaceChildren(...page.holds.map((hold) => pastHold(hold, true)));
    setText(this.state, page.holds.length > 0 ? '' : 'Nothing has ended yet, as far as this service saw.');
    this.more.hidden = page.next === null || this.limit === LIMIT_MAX;
  }

  tick() {
    this.ticks += 1;
    if (this.ticks % REFRESH_S === 0 && this.context.isLive()) void this.refresh();
  }
}

/**
 * A table: also for who cannot see the bars.
 * @param {string} caption
 * @param {Bucket[]} buckets
 */
function histogram(caption, buckets) {
  const most = Math.max(...buckets.map(({ count }) => count), 1);
  const rows = buckets.map(({ upToMs, count }, index) => {
    const bound = upToMs === null ? `over ${span(buckets[index - 1]?.upToMs ?? 0)}` : `up to ${span(upToMs)}`;
    const bar = make('div', 'bar-of');
    bar.style.width = `${(100 * count) / most}%`;
    return make(
      'tr',
      '',
      make('th', '', bound),
      make('td', 'bars', bar),
      make('td', 'number', String(count)),
    );
  });
  return make('table', 'histogram', make('caption', 'unseen', caption), make('tbody', '', ...rows));
}

/**
 * @param {KeySummary[]} all
 * @param {(one: KeySummary) => string} words
 */
function keys(all, words) {
  if (all.length === 0) return make('p', 'muted', 'None.');
  const items = all.map((one) =>
    make(
      'li',
      '',
      link(addressOf('lock', { key: one.key }), keyElement(one.key)),
      ' ',
      make('span', 'muted', words(one)),
    ),
  );
  return make('ol', 'keys', ...items);
}
