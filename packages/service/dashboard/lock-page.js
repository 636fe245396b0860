/** The page of one lock: holders, waiters, its past, and lines to copy. */
import { addressOf, keyElement, link, make, setText, splitKey } from './dom.js';
import { Entries, HOLDERS_MAX, HolderEntry, WaiterEntry } from './entries.js';
import { pastHold, sourceText } from './past-holds.js';
import { key as apiKey, ask } from './service.js';
import { after } from './time.js';

/**
 * @typedef {import('./board.js').Lock} Lock
 * @typedef {import('./board.js').Holder} Holder
 * @typedef {import('./views.js').PageContext} PageContext
 */

/** Changes within this time are one request for the past. */
const PAST_MS = 250;

export class Page {
  /**
   * @param {PageContext} context
   * @param {URLSearchParams} query
   */
  constructor(context, query) {
    this.context = context;
    this.key = query.get('key') ?? '';
    const { namespace } = splitKey(this.key);
    /** @type {Lock | undefined} */
    this.lock = undefined;
    this.isAdmin = false;
    this.cancel = () => {};
    const onEvict = (/** @type {Holder} */ holder) => this.lock && context.evict(this.lock, holder);
    const page = this;
    this.holders = new Entries(
      make('ul', 'holders'),
      class extends HolderEntry {
        constructor() {
          super();
          this.button = make('button', 'danger', 'Evict…');
          this.button.type = 'button';
          this.button.addEventListener('click', () => this.holder && onEvict(this.holder));
          /** @type {Holder | null} */
          this.holder = null;
          this.root.append(this.button);
        }

        /**
         * @override
         * @param {Holder} holder
         */
        show(holder) {
          super.show(holder);
          this.holder = holder;
          this.button.hidden = !page.isAdmin;
          const label = `Evict ${holder.owner}, token ${holder.token}`;
          if (this.button.ariaLabel !== label) this.button.ariaLabel = label;
        }
      },
    );
    this.waiters = new Entries(make('ol', 'waiters'), WaiterEntry);
    this.state = make('p', 'muted');
    this.line = make('p', 'muted');
    this.past = make('ol', 'past');
    this.noPast = make('p', 'muted');
    this.source = make('p', 'muted');
    this.lines = make('ul', 'copied');
    const ways = [link('#/', 'All locks')];
    if (namespace !== '') ways.push(link(addressOf('', { namespace }), `Namespace ${namespace}`));
    this.heading = make('h2', '', keyElement(this.key));
    this.root = make(
      'div',
      'lock-page',
      make('p', 'ways', ...ways.flatMap((way, index) => (index > 0 ? [' · ', way] : [way]))),
      this.heading,
      section('Holders', this.state, this.holders.list),
      section('Waiters', this.line, this.waiters.list),
      section('Timeline', this.noPast, this.past, this.source),
      section('For the command line', this.lines),
    );
    this.title = this.key;
    this.update();
    this.writeLines();
  }

  /** Everything that comes from requests, again. */
  async refresh() {
    this.isAdmin = await this.context.isAdmin(splitKey(this.key).namespace);
    this.tick();
    await this.readPast();
  }

  async readPast() {
    try {
      const response = await ask(`v2/history?limit=100&key=${encodeURIComponent(this.key)}`);
      /** @type {import('./past-holds.js').HistoryPage} */
      const history = await response.json();
      this.past.replaceChildren(...history.holds.map((hold) => pastHold(hold, false)));
      setText(this.noPast, history.holds.length > 0 ? '' : 'No hold has ended yet.');
      setText(this.source, sourceText(history));
    } catch (error) {
      this.context.failed(error, this.noPast);
    }
  }

  update() {
    const lock = this.context.board.locks.get(this.key);
    if (lock === this.lock) return;
    this.lock = lock;
    this.tick();
    this.cancel();
    this.cancel = after(PAST_MS, () => {
      this.writeLines();
      if (this.context.isLive()) void this.readPast();
    });
  }

  tick() {
    const { holders = [], holding = 0, waiters = [], waiting = 0 } = this.lock ?? {};
    this.holders.show(holders.slice(0, HOLDERS_MAX));
    const hidden = holding - Math.min(holders.length, HOLDERS_MAX);
    const nobody = this.context.isTold() ? 'Nobody holds it at the moment.' : '';
    setText(this.state, holders.length === 0 ? nobody : hidden > 0 ? `${hidden} more are not shown.` : '');
    this.waiters.show(waiters);
    const behind = waiting - waiters.length;
    setText(this.line, waiting === 0 ? 'Nobody waits.' : behind > 0 ? `${behind} more behind these.` : '');
  }

  close() {
    this.cancel();
  }

  writeLines() {
    const { namespace, name } = splitKey(this.key);
    const base = new URL('.', location.href).href;
    const token = this.lock?.holders[0]?.token;
    const auth = apiKey() === null ? '' : '-H "authorization: Bearer $HOLDFAST_API_KEY" ';
    const path = `${base}v2/locks/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
    const json = "-H 'content-type: application/json'";
    const evict = `-d '${JSON.stringify({ token, reason: 'why' })}'`;
    const at = `--store ${quoted(base.slice(0, -1))} --namespace=${quoted(namespace)}`;
    // Behind `--`, a name that begins with a dash is no option.
    const lock = name.startsWith('-') ? `-- ${quoted(name)}` : quoted(name);
    const lines = [
      `holdfast inspect ${at} ${lock}`,
      ...(token === undefined ? [] : [`holdfast evict ${at} --token ${token} --reason 'why' ${lock}`]),
      `curl -sSf ${auth}${quoted(path)}`,
      `curl -sSf ${auth}${quoted(`${base}v2/history?key=${encodeURIComponent(this.key)}`)}`,
      ...(token === undefined ? [] : [`curl -sSf ${auth}${json} ${quoted(`${path}/evict`)} ${evict}`]),
    ];
    const isWritten = lines.join('\n') === this.written;
    this.written = lines.join('\n');
    if (!isWritten) this.lines.replaceChildren(...lines.map((line) => this.lineOf(line)));
  }

  /** @param {string} text */
  lineOf(text) {
    const copy = make('button', 'plain', 'Copy');
    copy.type = 'button';
    copy.ariaLabel = `Copy: ${text}`;
    const code = make('code', '', text);
    copy.addEventListener('click', () => {
      navigator.clipboard?.writeText(text).then(
        () => this.context.toast('Copied.'),
        () => getSelection()?.selectAllChildren(code),
      ) ?? getSelection()?.selectAllChildren(code);
    });
    return make('li', '', code, ' ', copy);
  }
}

/**
 * @param {string} title
 * @param {...HTMLElement} parts
 */
function section(title, ...parts) {
  const element = make('section', 'inside', make('h3', '', title), ...parts);
  element.ariaLabel = title;
  return element;
}

/**
 * For a shell.
 * @param {string} text
 */
function quoted(text) {
  return /^[\w./:@%=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
