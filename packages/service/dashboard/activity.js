/** What happened since the page was opened: a chart and a log. */
import { has, wordsOf } from './board.js';
import { addressOf, byId, keyElement, link, make, setText } from './dom.js';
import { clock } from './time.js';

const SPAN_MS_MAX = 300_000;
const MINUTE_MS = 60_000;
const STEP_MS = 1_000;
const WIDTH = 300;
const HEIGHT = 60;
const KEPT_MAX = 300;
/** Lines that are made in one frame. */
const MADE_MAX = 25;

/** @typedef {{ atMs: number, waiting: number, contended: number }} Sample `waiting` -1: unknown. */

/** Contention, for at most five minutes: how many wait, and for how many locks. */
export class Chart {
  constructor() {
    /** @type {Sample[]} */
    this.samples = [];
    this.picture = byId('chart');
    this.area = byId('chart-area');
    this.waiting = byId('chart-waiting');
    this.contended = byId('chart-contended');
    this.most = byId('chart-most');
    this.from = byId('chart-from');
  }

  /**
   * The most of every second is kept, so that a short rush shows.
   * @param {{ waiting: number, contended: number } | null} figures
   */
  note(figures) {
    const atMs = Math.floor(performance.now() / STEP_MS) * STEP_MS;
    const { waiting, contended } = figures ?? { waiting: -1, contended: -1 };
    const last = this.samples.at(-1);
    if (last?.atMs === atMs) {
      last.waiting = Math.max(last.waiting, waiting);
      last.contended = Math.max(last.contended, contended);
    } else this.samples.push({ atMs, waiting, contended });
    while ((this.samples[0]?.atMs ?? atMs) < atMs - SPAN_MS_MAX) this.samples.shift();
  }

  draw() {
    const most = Math.max(...this.samples.map(({ waiting }) => waiting), 0);
    const top = Math.max(most, 4);
    const minutes = this.minutes();
    const waiting = this.path('waiting', top, minutes * MINUTE_MS);
    this.waiting.setAttribute('d', waiting.line);
    this.area.setAttribute('d', waiting.area);
    this.contended.setAttribute('d', this.path('contended', top, minutes * MINUTE_MS).line);
    setText(this.most, String(top));
    setText(this.from, `${minutes} min ago`);
    const now = Math.max(this.samples.at(-1)?.waiting ?? 0, 0);
    const label =
      most === 0 ? 'Nobody has waited.' : `${now} waiting now, at most ${most} in the last ${minutes} min.`;
    if (this.picture.getAttribute('aria-label') !== label) this.picture.setAttribute('aria-label', label);
  }

  /** How far it goes back: as far as anything is known, in whole minutes. */
  minutes() {
    const sinceMs = performance.now() - (this.samples[0]?.atMs ?? performance.now());
    return Math.min(Math.max(Math.ceil(sinceMs / MINUTE_MS), 1), SPAN_MS_MAX / MINUTE_MS);
  }

  /**
   * Steps: what was so stays so until the next sample. Broken where nobody knew.
   * @param {'waiting' | 'contended'} name
   * @param {number} top
   * @param {number} spanMs
   */
  path(name, top, spanMs) {
    const end = performance.now();
    const x = (/** @type {number} */ atMs) => (WIDTH * (1 - (end - atMs) / spanMs)).toFixed(1);
    let line = '';
    let area = '';
    this.samples.forEach((sample, index) => {
      if (sample.waiting < 0) return;
      const y = (HEIGHT - 1 - ((HEIGHT - 6) * sample[name]) / top).toFixed(1);
      const from = x(sample.atMs);
      const to = x(this.samples[index + 1]?.atMs ?? end);
      const begins = (this.samples[index - 1]?.waiting ?? -1) < 0;
      line += `${begins ? `M${from} ` : 'V'}${y}H${to}`;
      area += `M${from} ${HEIGHT}V${y}H${to}V${HEIGHT}z`;
    });
    return { line, area };
  }
}

/** What happened, the newest first. */
export class EventLog {
  constructor() {
    this.list = byId('events');
    // It scrolls: the keyboard has to get there.
    this.list.tabIndex = 0;
    /** @type {string[]} */
    this.words = [];
    this.prefix = '';
    /** @type {WeakMap<Element, string>} */
    this.texts = new WeakMap();
    /** @type {{ atMs: number, what: string, text: string, key: string | undefined }[]} */
    this.unshown = [];
  }

  /**
   * @param {number} atMs
   * @param {string} what
   * @param {string} text
   * @param {string} [key] without one it is about the connection
   */
  add(atMs, what, text, key) {
    this.unshown.push({ atMs, what, text, key });
    if (this.unshown.length > KEPT_MAX) this.unshown.shift();
  }

  /** Shows some of what was added. Whether that was all: a thousand lines in one frame would make it long. */
  draw() {
    for (const { atMs, what, text, key } of this.unshown.splice(0, MADE_MAX)) {
      const time = make('time', 'muted', clock(atMs));
      time.dateTime = new Date(atMs).toISOString();
      const about = key === undefined ? [] : [link(addressOf('lock', { key }), keyElement(key)), ' '];
      const item = make('li', what, time, ' ', ...about, make('span', 'what', what), ` ${text}`);
      this.texts.set(item, `${key ?? ''}\n${what} ${text}`.toLowerCase());
      this.filter(item);
      this.list.prepend(item);
      if (this.list.children.length > KEPT_MAX) this.list.lastElementChild?.remove();
    }
    return this.unshown.length === 0;
  }

  clear() {
    this.unshown = [];
    this.list.replaceChildren();
  }

  /**
   * @param {string} search
   * @param {string} namespace
   */
  search(search, namespace) {
    this.words = wordsOf(search);
    this.prefix = namespace === '' ? '' : `${namespace}/`.toLowerCase();
    for (const item of this.list.children) this.filter(/** @type {HTMLElement} */ (item));
  }

  /** @param {HTMLElement} item */
  filter(item) {
    const text = this.texts.get(item) ?? '';
    item.hidden = !(text.startsWith(this.prefix) && has(text, this.words));
  }
}
