/** What happened, the newest first. */
import { has, wordsOf } from './board.js';
import { byId, keyElement, make } from './dom.js';
import { clock } from './time.js';

const KEPT_MAX = 300;

export class EventLog {
  constructor() {
    this.list = byId('events');
    // It scrolls: the keyboard has to get there.
    this.list.tabIndex = 0;
    /** @type {string[]} */
    this.words = [];
    /** @type {WeakMap<Element, string>} */
    this.texts = new WeakMap();
  }

  /**
   * @param {number} atMs
   * @param {string} what
   * @param {string} text
   * @param {string} [key] without one it is about the connection
   */
  add(atMs, what, text, key) {
    const time = make('time', 'muted', clock(atMs));
    time.dateTime = new Date(atMs).toISOString();
    const about = key === undefined ? [] : [keyElement(key), ' '];
    const item = make('li', what, time, ' ', ...about, make('span', 'what', what), ` ${text}`);
    this.texts.set(item, `${key ?? ''}\n${what} ${text}`.toLowerCase());
    this.filter(item);
    this.list.prepend(item);
    if (this.list.children.length > KEPT_MAX) this.list.lastElementChild?.remove();
  }

  /** @param {string} search */
  search(search) {
    this.words = wordsOf(search);
    for (const item of this.list.children) this.filter(/** @type {HTMLElement} */ (item));
  }

  /** @param {HTMLElement} item */
  filter(item) {
    item.hidden = !has(this.texts.get(item) ?? '', this.words);
  }
}
