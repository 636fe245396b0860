/** The list of locks. */
import { endOf } from './board.js';
import { count, keyElement, link, make, setText, splitKey } from './dom.js';
import { storeNow, timeLeft } from './time.js';

/** Rows of a page. */
const PAGE = 200;
/** Rows that are made in one frame: all of a page at once would take longer than a frame lasts. */
const MADE_MAX = 25;

/** @typedef {import('./board.js').Lock} Lock */

/** One lock: a line to read at a glance, and its details. */
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
    this.onEvict = () => onEvict(this);
    /** @type {import('./lock-details.js').LockDetails | null} */
    this.inside = null;
    const summary = make('summary', '', keyElement(lock.key), this.owner, this.left, this.token, this.line);
    this.details = make('details', '', summary);
    this.details.addEventListener('toggle', () => {
      if (this.details.open) onOpen(this);
    });
    this.root = make('li', '', this.details);
    this.show(lock);
  }

  /** @param {Lock} lock */
  show(lock) {
    this.lock = lock;
    const [first] = lock.holders;
    const others = lock.holding - 1;
    const coolDown = first?.resting ? ' (cooling down)' : '';
    setText(
      this.owner,
      first ? `${first.owner}${coolDown}${others > 0 ? ` and ${others} more` : ''}` : 'nobody',
    );
    const token = Math.max(...lock.holders.map((holder) => holder.token));
    setText(this.token, first ? `token ${token}` : '');
    setText(this.line, lock.waiting > 0 ? `${lock.waiting} waiting` : '');
    this.root.classList.toggle('contended', lock.waiting > 0);
    this.tick();
  }

  /** Said once it is known whether who looks is an admin. @param {boolean | null} isAdmin */
  allow(isAdmin) {
    if (!this.inside) return;
    this.inside.evict.hidden = isAdmin !== true || this.lock.holders.length === 0;
    setText(this.inside.mayEvict, isAdmin === false ? 'Only an admin of this namespace may evict.' : '');
  }

  /** Made when it is opened for the first time. */
  async fill() {
    const { LockDetails } = await import('./lock-details.js');
    if (!this.inside) {
      this.inside = new LockDetails(this.lock.key, this.onEvict);
      this.details.append(this.inside.root);
    }
    this.tick();
  }

  tick() {
    const isHeld = this.lock.holders.length > 0;
    const leftMs = isHeld ? endOf(this.lock) - storeNow() : 0;
    setText(this.left, isHeld ? timeLeft(leftMs) : '');
    this.left.classList.toggle('soon', isHeld && leftMs < 10_000);
    if (this.details.open) this.inside?.show(this.lock);
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
    this.ways = ['First', 'Previous', 'Next', 'Last'].map((name) => link('', name));
    more.append(this.range, ...this.ways.flatMap((way) => [' ', way]));
    /** Where focus goes when its row is gone and no other is there. */
    this.refuge = refuge;
    this.listener = { onEvict, onOpen: (/** @type {LockRow} */ row) => this.ask(row) };
    this.isAdmin = isAdmin;
    /** @type {Map<string, LockRow>} */
    this.rows = new Map();
  }

  /**
   * Whether all rows are there; if not, the next call makes more of them.
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
    let made = 0;
    for (const lock of shown) {
      if (!this.rows.has(lock.key)) made += 1;
      if (made > MADE_MAX) break;
      const row = this.rowOf(lock);
      if (row.root === next) next = next.nextElementSibling;
      else this.list.insertBefore(row.root, next);
    }
    this.keepFocus(focused, place);
    this.more.hidden = last === 1;
    const from = (at - 1) * PAGE + 1;
    const to = count(from + shown.length - 1);
    const all = count(locks.length);
    setText(this.range, at === 1 ? `The first ${to} of ${all}.` : `${count(from)} to ${to} of ${all}.`);
    const numbers = [1, at - 1, at + 1, last];
    for (const [index, way] of this.ways.entries()) {
      const number = /** @type {number} */ (numbers[index]);
      way.hidden = index < 2 ? at === 1 : at === last;
      way.href = addressOfPage(Math.min(Math.max(number, 1), last));
    }
    return made <= MADE_MAX;
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
    const [isAdmin] = await Promise.all([this.isAdmin(splitKey(row.lock.key).namespace), row.fill()]);
    row.allow(isAdmin);
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
