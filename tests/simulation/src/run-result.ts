/** The result of a run: counts for the table, violations, and a digest of the history. */

export type FaultKind =
  | 'request lost'
  | 'reply lost'
  | 'message late'
  | 'message doubled'
  | 'cut off'
  | 'lag'
  | 'restart'
  | 'wake-up lost'
  | 'wake-up late'
  | 'wake-up doubled'
  | 'pause'
  | 'suspend'
  | 'crash'
  | 'clock jump'
  | 'abort'
  | 'eviction'
  | 'member paused'
  | 'member down'
  | 'member cut off';

export interface Violation {
  readonly kind: string;
  readonly atMs: number;
  readonly text: string;
}

/** A run stops recording after this many: the first ones say enough. */
const VIOLATIONS_MAX = 20;

export class RunResult {
  grants = 0;
  /** Grants to another process than the key's previous one. */
  changes = 0;
  leases = 0;
  handovers = 0;
  handoffs = 0;
  /** Requests, replies and wake-ups sent. */
  messages = 0;
  /** Of these: lost, late or doubled, cut-offs not counted. */
  faulty = 0;
  timeouts = 0;
  losses = 0;
  storeErrors = 0;
  placesLost = 0;
  longestWaitMs = 0;
  /** Per workload: granted calls, and the sum of their waits. */
  readonly waits: { count: number; sumMs: number }[] = [];
  /** The longest time a key was free while a caller wanted it: at all, and without a fault nearby. */
  longestIdleMs = 0;
  longestCleanIdleMs = 0;
  /** The time during which callers wanted a key, and the part in which it was free without a fault nearby or a change of process. */
  wantedMs = 0;
  idleMs = 0;
  readonly faults = new Map<FaultKind, number>();
  readonly violations: Violation[] = [];
  onViolation: () => void = () => {};
  /** Called for every line of the history. */
  onNote: ((line: string) => void) | null = null;
  #digest = 0x811c9dc5;

  fault(kind: FaultKind): void {
    this.faults.set(kind, (this.faults.get(kind) ?? 0) + 1);
  }

  wait(workload: number, tookMs: number): void {
    const { count, sumMs } = this.waits[workload] ?? { count: 0, sumMs: 0 };
    this.waits[workload] = { count: count + 1, sumMs: sumMs + tookMs };
  }

  violate(kind: string, atMs: number, text: string): void {
    if (this.violations.length >= VIOLATIONS_MAX) return;
    this.violations.push({ kind, atMs, text });
    this.onViolation();
  }

  /** Adds a line of the history to the digest. */
  note(...parts: readonly (string | number)[]): void {
    this.onNote?.(parts.join(' '));
    for (const part of parts) {
      const text = String(part);
      for (let at = 0; at < text.length; at++) {
        this.#digest = Math.imul(this.#digest ^ text.charCodeAt(at), 0x01000193);
      }
    }
  }

  /** Of the workload with the longest mean wait. */
  get meanWaitMs(): number {
    return Math.max(0, ...this.waits.map(({ count, sumMs }) => sumMs / count));
  }

  get digest(): string {
    return (this.#digest >>> 0).toString(16).padStart(8, '0');
  }
}
