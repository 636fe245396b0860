/** The list of locks: rows stay the same elements while their lock is there, so that focus and what is open stay. */
import { setText, splitKey } from './dom.js';
import { LockRow } from './lock-row.js';

/** More are not shown: nobody reads them, and search finds them. */
const SHOWN_MAX = 200;

/** @typedef {import('./board.js').Lock} Lock */

export class LockRows {
  /**
   * @param {{ list: HTMLElement, more: HTMLElement, refuge: HTMLElement, onEvict: (row: LockRow) => void,
   *   isAdmin: (namespace: string) => Promise<boolean> }} parts
   */
  constructor({ list, more, refuge, onEvict, isAdmin }) {
    this.list = list;
    this.more = more;
    /** Where focus goes when its row is gone and no other is there. */
    this.refuge = refuge;
    this.listener = { onEvict, onOpen: (/** @type {LockRow} */ row) => this.ask(row) };
    this.isAdmin = isAdmin;
    /** @type {Map<string, LockRow>} */
    this.rows = new Map();
  }

  /** @param {Lock[]} locks in order */
  show(locks) {
    const shown = locks.slice(0, SHOWN_MAX);
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
    this.more.hidden = locks.length <= SHOWN_MAX;
    setText(this.more, `The first ${SHOWN_MAX} of ${locks.length}. Search to see others.`);
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
