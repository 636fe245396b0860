/** One lock: a line to read at a glance, and all that is known of it inside. */
import { endOf, showMetadata } from './board.js';
import { keyElement, make, setText } from './dom.js';
import { duration, moment, storeNow } from './time.js';

/** As the library counts a lock for readers and writers. */
const READ_WRITE_CAPACITY = 1_000_000;

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
    this.holders = make('ul', 'holders');
    this.waiters = make('ol', 'waiters');
    this.more = make('p', 'muted');
    this.mayEvict = make('p', 'muted');
    this.evict = make('button', 'danger', 'Evict…');
    this.evict.type = 'button';
    this.evict.hidden = true;
    this.evict.addEventListener('click', () => onEvict(this));
    const summary = make('summary', '', keyElement(lock.key), this.owner, this.left, this.token, this.line);
    const inside = make('div', 'inside', this.holders, this.waiters, this.more, this.mayEvict, this.evict);
    this.details = make('details', '', summary, inside);
    this.details.addEventListener('toggle', () => {
      if (!this.details.open) return;
      this.fill();
      onOpen(this);
    });
    this.root = make('li', '', this.details);
    /** @type {(() => void)[]} What counts. */
    this.ticks = [];
    this.show(lock);
  }

  /** @param {Lock} lock */
  show(lock) {
    this.lock = lock;
    const [first, ...others] = lock.holders;
    const rest = others.length > 0 ? ` and ${others.length} more` : '';
    setText(this.owner, first ? `${first.owner}${rest}` : 'nobody');
    const token = Math.max(...lock.holders.map((holder) => holder.token));
    setText(this.token, first ? `token ${token}` : '');
    setText(this.line, lock.waiting > 0 ? `${lock.waiting} waiting` : '');
    this.root.classList.toggle('contended', lock.waiting > 0);
    if (this.details.open) this.fill();
    this.tick();
  }

  /** Said once it is known whether who looks is an admin. @param {boolean | null} isAdmin */
  allow(isAdmin) {
    this.evict.hidden = isAdmin !== true || this.lock.holders.length === 0;
    setText(this.mayEvict, isAdmin === false ? 'Only an admin of this namespace may evict.' : '');
    this.evict.setAttribute('aria-label', `Evict who holds ${this.lock.key}`);
  }

  fill() {
    const { holders, waiters, waiting } = this.lock;
    this.ticks = [];
    this.holders.replaceChildren(...holders.map((holder) => this.holderElement(holder)));
    if (holders.length === 0) this.holders.append(make('li', 'muted', 'Nobody holds it at the moment.'));
    this.waiters.replaceChildren(...waiters.map((waiter) => this.waiterElement(waiter)));
    this.waiters.hidden = waiters.length === 0;
    setText(this.more, waiting > waiters.length ? `and ${waiting - waiters.length} more behind them` : '');
    if (holders.length === 0) this.evict.hidden = true;
  }

  tick() {
    const { holders } = this.lock;
    const leftMs = holders.length > 0 ? endOf(this.lock) - storeNow() : 0;
    setText(this.left, holders.length > 0 ? until(leftMs) : '');
    this.left.classList.toggle('soon', holders.length > 0 && leftMs < 10_000);
    if (this.details.open) for (const run of this.ticks) run();
  }

  /** @param {import('./board.js').Holder} holder */
  holderElement({ owner, token, acquiredAt, expiresAt, metadata, permits, capacity, resting }) {
    const since = make('dd');
    const ends = make('dd');
    const run = () => {
      const now = storeNow();
      setText(since, `${moment(acquiredAt)}, for ${duration(now - acquiredAt)}`);
      setText(ends, `${moment(expiresAt)}, ${until(expiresAt - now)}`);
    };
    run();
    this.ticks.push(run);
    const facts = make(
      'dl',
      '',
      ...fact('Since', since),
      ...fact('Until', ends),
      ...fact('Token', make('dd', '', String(token))),
    );
    const text = showMetadata(metadata);
    if (text !== '') facts.append(...fact('Metadata', make('dd', '', make('code', '', text))));
    const share = shareOf(permits, capacity);
    const notes = [share, resting ? 'released, rests until its shortest time is over' : ''].filter(Boolean);
    return make(
      'li',
      '',
      make('p', '', make('b', '', owner), ' ', make('span', 'muted', notes.join(', '))),
      facts,
    );
  }

  /** @param {import('./board.js').Waiter} waiter */
  waiterElement({ owner, since, woken, permits, capacity }) {
    const waits = make('span', 'muted');
    const notes = [shareOf(permits, capacity), woken ? 'its turn' : '']
      .filter(Boolean)
      .map((note) => `, ${note}`);
    const run = () => setText(waits, ` waits ${duration(storeNow() - since)}${notes.join('')}`);
    run();
    this.ticks.push(run);
    return make('li', '', make('b', '', owner), waits);
  }
}

/** @param {number} ms */
function until(ms) {
  return ms > 0 ? `${duration(ms + 999)} left` : 'ending';
}

/**
 * @param {string} name
 * @param {HTMLElement} value
 */
function fact(name, value) {
  return [make('dt', '', name), value];
}

/**
 * Nothing for a plain lock.
 * @param {number} permits
 * @param {number} capacity
 */
function shareOf(permits, capacity) {
  if (capacity === 1) return '';
  if (capacity === READ_WRITE_CAPACITY) return permits === 1 ? 'reads' : 'writes';
  return `${permits} of ${capacity} permits`;
}
