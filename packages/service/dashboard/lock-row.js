/** One lock: a line to read at a glance, and all that is known of it inside. */
import { countHolders, endOf } from './board.js';
import { keyElement, make, setText } from './dom.js';
import { Entries, HolderEntry, timeLeft, WaiterEntry } from './entries.js';
import { storeNow } from './time.js';

/** More are only counted: nobody reads them, and each counts every second. */
const HOLDERS_MAX = 100;

/** @typedef {import('./board.js').Lock} Lock */

export class LockRow {
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
