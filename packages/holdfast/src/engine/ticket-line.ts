/** Tickets in the order in which they came. Linked through themselves: joining and leaving cost nothing. */
import type { Ticket } from './ticket.js';

export class TicketLine {
  /** How many of them take the next answer as final. */
  overdue = 0;
  #first: Ticket | null = null;
  #last: Ticket | null = null;

  get first(): Ticket | null {
    return this.#first;
  }

  add(ticket: Ticket): void {
    ticket.previous = this.#last;
    ticket.inLine = true;
    if (ticket.overdue) this.overdue += 1;
    if (this.#last) this.#last.next = ticket;
    else this.#first = ticket;
    this.#last = ticket;
  }

  /** A ticket that has left already is left alone. */
  remove(ticket: Ticket): void {
    if (!ticket.inLine) return;
    ticket.inLine = false;
    if (ticket.overdue) this.overdue -= 1;
    const { previous, next } = ticket;
    if (previous) previous.next = next;
    else this.#first = next;
    if (next) next.previous = previous;
    else this.#last = previous;
  }

  /** Those in line now; each may leave while it is looked at. */
  *[Symbol.iterator](): Iterator<Ticket> {
    let ticket = this.#first;
    while (ticket) {
      const { next } = ticket;
      yield ticket;
      ticket = next;
    }
  }
}
