/** The view that the address names, and the keyboard. Pages other than the list are fetched when they are opened. */
import { address, byId, make } from './dom.js';

/**
 * @typedef {import('./board.js').Lock} Lock
 * @typedef {{ board: import('./board.js').Board, isLive: () => boolean, isTold: () => boolean, draw: () => void, toast: (text: string) => void,
 *   evict: (lock: Lock, holder: import('./board.js').Holder) => void, isAdmin: (namespace: string) => Promise<boolean>,
 *   failed: (error: unknown, place: Element) => void }} PageContext
 * @typedef {{ title: string, root: HTMLElement, heading: HTMLElement, refresh: () => Promise<void>, update?: () => void,
 *   tick?: () => void, close?: () => void }} Page
 * @typedef {{ Page: new (context: PageContext, query: URLSearchParams) => Page }} PageModule
 */

/** @type {Record<string, () => Promise<PageModule>>} */
const PAGES = {
  lock: () => import('./lock-page.js'),
  history: () => import('./history-page.js'),
  service: () => import('./service-page.js'),
};

export class Views {
  /**
   * @param {PageContext} context
   * @param {(query: URLSearchParams) => void} onList
   */
  constructor(context, onList) {
    this.context = context;
    this.onList = onList;
    /** @type {Page | null} */
    this.page = null;
    this.opened = 0;
    this.hasStyles = false;
    addEventListener('popstate', () => this.open());
  }

  /** Shows what the address names. */
  open() {
    const { view, query } = address();
    const name = view in PAGES ? view : '';
    this.opened += 1;
    this.page?.close?.();
    this.page = null;
    byId('list').hidden = name !== '';
    byId('page').hidden = name === '';
    for (const way of byId('views').querySelectorAll('a')) {
      way.ariaCurrent = way.hash === `#/${name}` ? 'page' : null;
    }
    if (name === '') this.onList(query);
    else void this.openPage(name, query, this.opened);
  }

  /**
   * @param {string} name
   * @param {URLSearchParams} query
   * @param {number} opened
   */
  async openPage(name, query, opened) {
    const place = byId('page');
    place.replaceChildren();
    try {
      const [module] = await Promise.all([PAGES[name]?.(), this.fetchStyles()]);
      // Somebody went on meanwhile.
      if (!module || opened !== this.opened) return;
      const page = new module.Page(this.context, query);
      this.page = page;
      place.replaceChildren(page.root);
      page.heading.tabIndex = -1;
      page.heading.focus();
      this.context.draw();
      if (this.context.isLive()) await page.refresh();
    } catch (error) {
      if (opened === this.opened) this.context.failed(error, place);
    }
  }

  async help() {
    const [{ makeHelp }] = await Promise.all([import('./help.js'), this.fetchStyles()]);
    /** @type {HTMLDialogElement | null} */
    const known = document.querySelector('#help');
    (known ?? makeHelp()).showModal();
  }

  async fetchStyles() {
    if (this.hasStyles) return;
    this.hasStyles = true;
    const styles = make('link');
    styles.rel = 'stylesheet';
    styles.href = 'dashboard/pages.css';
    await new Promise((resolve) => {
      styles.onload = styles.onerror = resolve;
      document.head.append(styles);
    });
  }
}

/**
 * `/` searches, arrows go from row to row, Escape goes back, `?` says so.
 * @param {Views} views
 * @param {HTMLInputElement} search
 * @param {() => boolean} isOff
 */
export function listenToKeys(views, search, isOff) {
  byId('help-open').addEventListener('click', () => void views.help());
  document.addEventListener('keydown', (event) => {
    const { target, key } = event;
    if (isOff() || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]'))
      return;
    const isTyping = target instanceof HTMLInputElement || target instanceof HTMLSelectElement;
    const isDone =
      isTyping && !(target === search && key === 'ArrowDown') ? key === 'Escape' && left(target) : press(key);
    if (isDone) event.preventDefault();
  });

  /** @param {HTMLElement} target */
  function left(target) {
    // The search is emptied first.
    if (search.value === '') target.blur();
    return false;
  }

  /** @param {string} key */
  function press(key) {
    const isList = !byId('list').hidden;
    if (key === '?') void views.help();
    else if (key === '/') {
      if (!isList) location.hash = '#/';
      byId('list').hidden = false;
      search.focus();
    } else if (key === 'Escape' && !isList) history.back();
    else if (isList && key === 'Escape') close();
    else if (isList && (key === 'ArrowDown' || key === 'ArrowUp')) return move(key === 'ArrowDown' ? 1 : -1);
    else return false;
    return true;
  }
}

function rowNow() {
  return document.activeElement?.closest('#locks > li');
}

function close() {
  const details = rowNow()?.querySelector('details');
  if (!details) return;
  details.open = false;
  details.querySelector('summary')?.focus();
}

/** @param {1 | -1} by */
function move(by) {
  const now = rowNow();
  const isInside = now?.contains(document.activeElement) && document.activeElement?.tagName !== 'SUMMARY';
  if (isInside) return false;
  const next = now
    ? by === 1
      ? now.nextElementSibling
      : now.previousElementSibling
    : byId('locks').firstElementChild;
  next?.querySelector('summary')?.focus();
  return next !== null;
}
