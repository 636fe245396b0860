/** The list of locks. */
import { countHolders, endOf } from './board.js';
import { addressOf, keyElement, link, make, setText, splitKey } from './dom.js';
import { Entries, HolderEntry, timeLeft, WaiterEntry } from './entries.js';
import { storeNow } from './time.js';

/** More are only counted: nobody reads them, and each counts every second. */
const HOLDERS_MAX = 100;

/** Rows of a page. */
const PAGE = 200;

/** @typedef {import('./board.js').Lock} Lock */

/** One lock: a line to read at a glance, and all that is known of it inside. */
class LockRow {
  /**
   * @param {Lock} lock
   * @param {{ onOpen: (row: LockRow) => void, onEvict: (row: LockRow) => void }} listener
   */
  constructor(lock, { onOpen, onEvict }) {
    this.lock = lock;
    this.owner = make('span', 'owner');
    this.token = make('span', 'token muted');
    this.left = make('span', 'left');
    this.line = make('span', 'line');
    this.holders = new Entries(make('ul', 'holders'), HolderEntry);
    this.otherHolders = make('p', 'muted');
    this.mayEvict = make('p', 'muted');
    this.evict = make('button', 'danger', 'Evict…');
    this.evict.type = 'button';
    this.evict.hidden = true;
    this.evict.addEventListener('click', () => onEvict(this));
    this.waiters = new Entries(make('ol', 'waiters'), WaiterEntry);
    this.otherWaiters = make('p', 'muted');
    const summary = make('summary', '', keyElement(lock.key), this.owner, this.left, this.token, this.line);
    const inside = make(
      'div',
      'inside',
      this.holders.list,
      this.otherHolders,
      this.mayEvict,
      this.evict,
      this.waiters.list,
      this.otherWaiters,
      link(addressOf('lock', { key: lock.key }), 'Timeline and commands'),
    );
    this.details = make('details', '', summary, inside);
    this.details.addEventListener('toggle', () => {
      if (!this.details.open) return;
      this.tick();
      onOpen(this);
    });
    this.holders.list.ariaLabel = 'Holders';
    this.waiters.list.ariaLabel = 'Waiting line';
    this.root = make('li', '', this.details);
    this.show(lock);
  }

  /** @param {Lock} lock */
  show(lock) {
    this.lock = lock;
    const [first] = lock.holders;
    const others = countHolders(lock) - 1;
    setText(this.owner, first ? `${first.owner}${others > 0 ? ` and ${others} more` : ''}` : 'nobody');
    const token = Math.max(...lock.holders.map((holder) => holder.token));
    setText(this.token, first ? `token ${token}` : '');
    setText(this.line, lock.waiting > 0 ? `${lock.waiting} waiting` : '');
    this.root.classList.toggle('contended', lock.waiting > 0);
    if (!first) this.evict.hidden = true;
    this.tick();
  }

  /** Said once it is known whether who looks is an admin. @param {boolean | null} isAdmin */
  allow(isAdmin) {
    this.evict.hidden = isAdmin !== true || this.lock.holders.length === 0;
    setText(this.mayEvict, isAdmin === false ? 'Only an admin of this namespace may evict.' : '');
    this.evict.ariaLabel = `Evict who holds ${this.lock.key}`;
  }

  tick() {
    const isHeld = this.lock.holders.length > 0;
    const leftMs = isHeld ? endOf(this.lock) - storeNow() : 0;
    setText(this.left, isHeld ? timeLeft(leftMs) : '');
    this.left.classList.toggle('soon', isHeld && leftMs < 10_000);
    if (this.details.open) this.fill();
  }

  fill() {
    const { holders, waiters, waiting } = this.lock;
    this.holders.show(holders.slice(0, HOLDERS_MAX));
    const hidden = countHolders(this.lock) - Math.min(holders.length, HOLDERS_MAX);
    const nobody = holders.length === 0 ? 'Nobody holds it at the moment.' : '';
    setText(this.otherHolders, hidden > 0 ? `and ${hidden} more` : nobody);
    this.waiters.show(waiters);
    setText(
      this.otherWaiters,
      waiting > waiters.length ? `and ${waiting - waiters.length} more behind them` : '',
    );
  }
}

/** The list of locks: rows stay the same elements while their lock is there, so that focus and what is open stay. */
export class LockRows {
  /**
   * @param {{ list: HTMLElement, more: HTMLElement, refuge: HTMLElement, onEvict: (row: LockRow) => void,
   *   isAdmin: (namespace: string) => Promise<boolean> }} parts
   */
  constructor({ list, more, refuge, onEvict, isAdmin }) {
    this.list = list;
    this.more = more;
    this.range = make('span');
    this.previous = link('', 'Previous');
    this.next = link('', 'Next');
    more.append(this.range, ' ', this.previous, ' ', this.next);
    /** Where focus goes when its row is gone and no other is there. */
    this.refuge = refuge;
    this.listener = { onEvict, onOpen: (/** @type {LockRow} */ row) => this.ask(row) };
    this.isAdmin = isAdmin;
    /** @type {Map<string, LockRow>} */
    this.rows = new Map();
  }

  /**
   * @param {Lock[]} locks in order
   * @param {number} page from 1
   * @param {(page: number) => string} addressOfPage
   */
  show(locks, page, addressOfPage) {
    const last = Math.max(Math.ceil(locks.length / PAGE), 1);
    const at = Math.min(page, last);
    const shown = locks.slice((at - 1) * PAGE, at * PAGE);
    const focused = document.activeElement;
    const place = [...this.list.children].findIndex((row) => row.contains(focused));
    this.drop(new Set(shown.map(({ key }) => key)));
    let next = this.list.firstElementChild;
    for (const lock of shown) {
      const row = this.rowOf(lock);
      if (row.root === next) next = next.nextElementSibling;
      else this.list.insertBefore(row.root, next);
    }
    this.keepFocus(focused, place);
    this.more.hidden = last === 1;
    const from = (at - 1) * PAGE + 1;
    const to = from + shown.length - 1;
    setText(
      this.range,
      at === 1 ? `The first ${to} of ${locks.length}.` : `${from} to ${to} of ${locks.length}.`,
    );
    for (const [way, number] of /** @type {const} */ ([
      [this.previous, at - 1],
      [this.next, at + 1],
    ])) {
      way.hidden = number < 1 || number > last;
      way.href = addressOfPage(number);
    }
  }

  tick() {
    for (const row of this.rows.values()) row.tick();
  }

  /** Asks again what may be done: somebody else may have logged in. */
  askAgain() {
    for (const row of this.rows.values()) {
      row.allow(null);
      if (row.details.open) void this.ask(row);
    }
  }

  /** @param {Set<string>} kept */
  drop(kept) {
    for (const [key, row] of this.rows) {
      if (kept.has(key)) continue;
      row.root.remove();
      this.rows.delete(key);
    }
  }

  /** @param {Lock} lock */
  rowOf(lock) {
    const known = this.rows.get(lock.key);
    if (!known) {
      const row = new LockRow(lock, this.listener);
      this.rows.set(lock.key, row);
      return row;
    }
    if (known.lock === lock) return known;
    const wasHeld = known.lock.holders.length > 0;
    known.show(lock);
    if (known.details.open && !wasHeld) void this.ask(known);
    return known;
  }

  /** @param {LockRow} row */
  async ask(row) {
    row.allow(await this.isAdmin(splitKey(row.lock.key).namespace));
  }

  /**
   * An element that is moved or removed loses it; with the keyboard that means to begin at the top again.
   * @param {Element | null} focused
   * @param {number} place
   */
  keepFocus(focused, place) {
    if (place < 0 || document.activeElement === focused) return;
    const near = this.list.children[Math.min(place, this.list.children.length - 1)]?.querySelector('summary');
    const target = focused?.isConnected ? focused : (near ?? this.refuge);
    if (target instanceof HTMLElement) target.focus({ preventScroll: true });
  }
}
