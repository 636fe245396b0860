/** What an opened row shows. */
import { addressOf, link, make, setText } from './dom.js';
import { Entries, HOLDERS_MAX, HolderEntry, WaiterEntry } from './entries.js';

/** @typedef {import('./board.js').Lock} Lock */

/** All that is known of a lock. */
export class LockDetails {
  /**
   * @param {string} key
   * @param {() => void} onEvict
   */
  constructor(key, onEvict) {
    this.holders = new Entries(make('ul', 'holders'), HolderEntry);
    this.otherHolders = make('p', 'muted');
    this.mayEvict = make('p', 'muted');
    this.evict = make('button', 'danger', 'Evict…');
    this.evict.type = 'button';
    this.evict.hidden = true;
    this.evict.ariaLabel = `Evict who holds ${key}`;
    this.evict.addEventListener('click', onEvict);
    this.waiters = new Entries(make('ol', 'waiters'), WaiterEntry);
    this.otherWaiters = make('p', 'muted');
    this.holders.list.ariaLabel = 'Holders';
    this.waiters.list.ariaLabel = 'Waiting line';
    this.root = make(
      'div',
      'inside',
      this.holders.list,
      this.otherHolders,
      this.mayEvict,
      this.evict,
      this.waiters.list,
      this.otherWaiters,
      link(addressOf('lock', { key }), 'Timeline and commands'),
    );
  }

  /** @param {Lock} lock */
  show(lock) {
    const { holders, holding, waiters, waiting } = lock;
    if (holders.length === 0) this.evict.hidden = true;
    this.holders.show(holders.slice(0, HOLDERS_MAX));
    const hidden = holding - Math.min(holders.length, HOLDERS_MAX);
    const nobody = holders.length === 0 ? 'Nobody holds it at the moment.' : '';
    setText(this.otherHolders, hidden > 0 ? `and ${hidden} more` : nobody);
    this.waiters.show(waiters);
    setText(
      this.otherWaiters,
      waiting > waiters.length ? `and ${waiting - waiters.length} more behind them` : '',
    );
  }
}
