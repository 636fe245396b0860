/** A list in order, linked through its items: joining and leaving allocate nothing. */

export interface Linked<T> {
  /** Written by the list alone. */
  previous: T | null;
  next: T | null;
  isListed: boolean;
}

export class LinkedList<T extends Linked<T>> {
  first: T | null = null;
  size = 0;
  #last: T | null = null;

  add(item: T): void {
    this.#link(item, this.#last, null);
  }

  /** Takes the place of another. */
  replace(old: T, item: T): void {
    const { previous, next } = old;
    this.remove(old);
    this.#link(item, previous, next);
  }

  /** Does nothing for an item that has left already. A removed item still has its `next`. */
  remove(item: T): void {
    if (!item.isListed) return;
    item.isListed = false;
    this.size -= 1;
    const { previous, next } = item;
    if (previous) previous.next = next;
    else this.first = next;
    if (next) next.previous = previous;
    else this.#last = previous;
  }

  /** Each item may be removed while it is visited. */
  *[Symbol.iterator](): Iterator<T> {
    let item = this.first;
    while (item) {
      const { next } = item;
      yield item;
      item = next;
    }
  }

  #link(item: T, previous: T | null, next: T | null): void {
    item.isListed = true;
    this.size += 1;
    item.previous = previous;
    item.next = next;
    if (previous) previous.next = item;
    else this.first = item;
    if (next) next.previous = item;
    else this.#last = item;
  }
}
