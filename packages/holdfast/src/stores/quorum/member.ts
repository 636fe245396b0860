/**
 * One server of the quorum, as the proposer sees it: an acceptor that keeps a record per key. Redis implements it with a
 * script (redis-member.ts), the simulation with an object.
 *
 * A record is a promised ballot, an accepted ballot with its value, and a time after which the server forgets it. Its
 * life never gets shorter. `until` bounds how long a message may be on its way: by its own clock, the server refuses
 * anything later. So a message with an old ballot never meets a server that has forgotten a higher one.
 */

/** `COUNTER.PROPOSER`; '' is below all others. A counter is never below the time in microseconds. */
export type Ballot = string;

export interface Prepare {
  readonly kind: 'prepare';
  readonly key: string;
  readonly ballot: Ballot;
  /**
   * When to promise: always; only if the record accepted is this one; or, for both of the others, if it is of a lock that
   * nobody holds. Else the request is a read that changes nothing.
   */
  readonly when: 'always' | 'free' | { readonly accepted: Ballot };
  readonly until: number;
  readonly keepMs: number;
}

export interface Accept {
  readonly kind: 'accept';
  readonly key: string;
  readonly ballot: Ballot;
  readonly value: string;
  readonly isFree: boolean;
  /** Promised at the same time; '' for none. The next write of this proposer then needs no `prepare`. */
  readonly next: Ballot;
  readonly until: number;
  readonly keepMs: number;
}

export interface Peek {
  readonly kind: 'peek';
  readonly key: string;
}

export type Request = Peek | Prepare | Accept;

export interface MemberReply {
  /** The server's clock, in milliseconds with fractions. */
  readonly time: number;
  /** Promised, or accepted. */
  readonly isDone: boolean;
  readonly promised: Ballot;
  readonly accepted: Ballot;
  readonly value: string;
  /** For how long the server keeps the record as it was found. */
  readonly keptMs: number;
  /** False where the client may have sent the request twice: then this may be the answer to the second. */
  readonly isOnce: boolean;
}

/** A server introduces itself: which quorum it is enrolled in, at which place, and of how many servers. */
export interface Greeting {
  readonly time: number;
  /** Null: not enrolled, or its data may be older than its promises. `reason` says which. */
  readonly quorum: string | null;
  readonly place: number;
  readonly size: number;
  readonly reason: string;
}

/**
 * A vote: the id of the quorum, the place in it that the server was enrolled at when it was greeted, and the number of
 * servers that the process was given. Processes with another number count another majority, so the server refuses them.
 */
export interface Seat {
  readonly quorum: string;
  readonly place: number;
  readonly size: number;
}

/** The server does not have that seat, or not any more. It has not executed the request, unless the client sent it twice. */
export interface Refusal {
  readonly isOnce: boolean;
  readonly isRefused: true;
}

export interface Member {
  /** For messages. */
  readonly name: string;
  greet(): Promise<Greeting>;
  ask(request: Request, seat: Seat): Promise<MemberReply | Refusal>;
}

export function otherSize(enrolled: number, given: number): string {
  return `this quorum was enrolled with ${enrolled} servers, and ${given} were given: pass the same ones, in the same order`;
}

export function counterOf(ballot: Ballot): number {
  return ballot === '' ? 0 : Number(ballot.slice(0, ballot.indexOf('.')));
}

export function compareBallots(a: Ballot, b: Ballot): number {
  if (a === '' || b === '') return a.length - b.length;
  return (
    counterOf(a) - counterOf(b) || Number(a.slice(a.indexOf('.') + 1)) - Number(b.slice(b.indexOf('.') + 1))
  );
}
