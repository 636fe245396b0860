/** What happened in a run: counts for the table, violations, and a digest of the history. */

export type FaultKind =
  | 'request lost'
  | 'reply lost'
  | 'message late'
  | 'message doubled'
  | 'cut off'
  | 'lag'
  | 'restart'
  | 'hint lost'
  | 'hint late'
  | 'hint doubled'
  | 'pause'
  | 'suspend'
  | 'crash'
  | 'clock jump'
  | 'abort'
  | 'eviction';

export interface Violation {
  readonly kind: string;
  readonly atMs: number;
  readonly text: string;
}

/** After so many a run is over: the first ones say enough. */
const VIOLATIONS_MAX = 20;

export class Tally {
  grants = 0;
  /** Grants to another process than the key's last. */
  changes = 0;
  leases = 0;
  handovers = 0;
  handoffs = 0;
  /** Requests, replies and hints sent. */
  messages = 0;
  /** Of those: lost, late or doubled, cut-offs not counted. */
  faulty = 0;
  timeouts = 0;
  losses = 0;
  storeErrors = 0;
  placesLost = 0;
  longestWaitMs = 0;
  /** Of every crew: how many got a lock, and how long they waited for it together. */
  readonly waits: { count: number; sumMs: number }[] = [];
  /** How long a key stood free at most while somebody wanted it: at all, and with no fault near. */
  longestIdleMs = 0;
  longestCleanIdleMs = 0;
  /** Of all the time that somebody wanted a key: how long it stood free, with no fault near and not just changing hands. */
  wantedMs = 0;
  idleMs = 0;
  readonly faults = new Map<FaultKind, number>();
  readonly violations: Violation[] = [];
  onViolation: () => void = () => {};
  /** Is told the history, line by line. */
  onNote: ((line: string) => void) | null = null;
  #digest = 0x811c9dc5;

  fault(kind: FaultKind): void {
    this.faults.set(kind, (this.faults.get(kind) ?? 0) + 1);
  }

  wait(crew: number, tookMs: number): void {
    const { count, sumMs } = this.waits[crew] ?? { count: 0, sumMs: 0 };
    this.waits[crew] = { count: count + 1, sumMs: sumMs + tookMs };
  }

  violate(kind: string, atMs: number, text: string): void {
    if (this.violations.length >= VIOLATIONS_MAX) return;
    this.violations.push({ kind, atMs, text });
    this.onViolation();
  }

  /** Takes a part of the history into the digest. */
  note(...parts: readonly (string | number)[]): void {
    this.onNote?.(parts.join(' '));
    for (const part of parts) {
      const text = String(part);
      for (let at = 0; at < text.length; at++) {
        this.#digest = Math.imul(this.#digest ^ text.charCodeAt(at), 0x01000193);
      }
    }
  }

  /** Of the crew that waited longest. */
  get meanWaitMs(): number {
    return Math.max(0, ...this.waits.map(({ count, sumMs }) => sumMs / count));
  }

  get digest(): string {
    return (this.#digest >>> 0).toString(16).padStart(8, '0');
  }
}
