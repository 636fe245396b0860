/** Who holds a lock and who waits for it, an entry each. */
import { showMetadata } from './board.js';
import { make, setText } from './dom.js';
import { duration, moment, storeNow, timeLeft } from './time.js';

/** As the library counts a lock for readers and writers. */
const READ_WRITE_CAPACITY = 1_000_000;

/** More are only counted: nobody reads them, and each is updated every second. */
export const HOLDERS_MAX = 100;

/**
 * As many entries as there is to show. They stay the same elements: what somebody marks to copy it stays marked.
 * @template T
 */
export class Entries {
  /**
   * @param {HTMLElement} list
   * @param {new () => { root: HTMLElement, show: (one: T) => void }} Entry
   */
  constructor(list, Entry) {
    this.list = list;
    this.Entry = Entry;
    /** @type {{ root: HTMLElement, show: (one: T) => void }[]} */
    this.entries = [];
  }

  /** @param {T[]} all */
  show(all) {
    for (const { root } of this.entries.splice(all.length)) root.remove();
    for (const [index, one] of all.entries()) {
      const entry = this.entries[index] ?? new this.Entry();
      if (index === this.entries.length) {
        this.entries.push(entry);
        this.list.append(entry.root);
      }
      entry.show(one);
    }
  }
}

export class HolderEntry {
  constructor() {
    this.owner = make('b');
    this.notes = make('span', 'muted');
    this.since = make('dd');
    this.until = make('dd');
    this.token = make('dd');
    this.metadata = make('code');
    this.metadataFact = fact('Metadata', make('dd', '', this.metadata));
    const facts = make(
      'dl',
      '',
      ...fact('Since', this.since),
      ...fact('Until', this.until),
      ...fact('Token', this.token),
      ...this.metadataFact,
    );
    this.root = make('li', '', make('p', '', this.owner, ' ', this.notes), facts);
  }

  /** @param {import('./board.js').Holder} holder */
  show({ owner, token, acquiredAt, expiresAt, metadata, permits, capacity, resting }) {
    const now = storeNow();
    const notes = [
      shareOf(permits, capacity),
      resting ? 'released; in its cool-down (minHold) until then' : '',
    ];
    const text = showMetadata(metadata);
    setText(this.owner, owner);
    setText(this.notes, notes.filter(Boolean).join(', '));
    setText(this.since, `${moment(acquiredAt)}, for ${duration(now - acquiredAt)}`);
    setText(this.until, `${moment(expiresAt)}, ${timeLeft(expiresAt - now)}`);
    setText(this.token, String(token));
    setText(this.metadata, text);
    for (const part of this.metadataFact) part.hidden = text === '';
  }
}

export class WaiterEntry {
  constructor() {
    this.owner = make('b');
    this.notes = make('span', 'muted');
    this.root = make('li', '', this.owner, ' ', this.notes);
  }

  /** @param {import('./board.js').Waiter} waiter */
  show({ owner, since, woken, permits, capacity }) {
    const notes = [
      `waits ${duration(storeNow() - since)}`,
      shareOf(permits, capacity),
      woken ? 'its turn' : '',
    ];
    setText(this.owner, owner);
    setText(this.notes, notes.filter(Boolean).join(', '));
  }
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
