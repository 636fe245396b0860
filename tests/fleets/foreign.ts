/** The other software, re-enacted: it issues exactly the conditional writes that the original issues, and no others. */

export interface ForeignLock {
  /** What the lock is under, for people to read. */
  readonly owner: string;
  /** Extends it, where the original can. False: it was another's by then. */
  heartbeat(leaseMs: number): Promise<boolean>;
  /** False: it was another's by then. */
  release(): Promise<boolean>;
}

export interface Foreign {
  /** One attempt. Null: somebody else holds it. */
  acquire(name: string, owner: string, leaseMs: number): Promise<ForeignLock | null>;
}

/** The clock of the other software's machine. */
export type MachineClock = () => number;

/** Whether the promise resolves, or fails because the condition of a write did. */
export async function holds(write: Promise<unknown>): Promise<boolean> {
  try {
    await write;
    return true;
  } catch (error) {
    if (error instanceof Error && error.name === 'ConditionalCheckFailedException') return false;
    throw error;
  }
}
