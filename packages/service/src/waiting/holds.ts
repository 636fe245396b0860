/** Holds that the service makes for clients that bring none. */
import type { HoldId } from 'holdfast/protocol';
import { randomId } from '../clock.js';

/** How long a hold keeps its permits at least is part of its text, so that any service process can see to it. */
const REST = /~([0-9]{1,9})$/;

/** Unguessable. Each has a process text of its own, so that no two of them stand in each other's way at the store. */
export function newHold(minHoldMs: number): HoldId {
  return { process: withRest(randomId(), minHoldMs), number: 1 };
}

export function withRest(process: string, minHoldMs: number): string {
  return minHoldMs > 0 ? `${process}~${minHoldMs}` : process;
}

/** What was asked for with the acquire. */
export function minHoldOf({ process }: HoldId): number {
  return Number(REST.exec(process)?.[1] ?? 0);
}

/** As clients write it. */
export function holdText({ process, number }: HoldId): string {
  return `${process}.${number}`;
}
