/**
 * Which commands of a batch travel together. Renewals never share a statement with anything else, and are sent first:
 * a claim that waits for a row would hold them up (F14, F30). Commands of one key keep their order.
 */
import type { Command } from '../../protocol/index.js';

/** A command and those who wait for its answer. */
export interface Slot<R> {
  readonly command: Command;
  resolve(reply: R): void;
  reject(error: unknown): void;
}

/** Statements that follow each other. The chains of one batch are independent: they share no key. */
export type Chain<R> = readonly (readonly Slot<R>[])[];

/** `apart`: keys whose rows were not to be had a moment ago, each in a statement of its own. */
export function chainsOf<R>(
  slots: readonly Slot<R>[],
  apart: (key: string) => boolean,
  most: number,
): readonly Chain<R>[] {
  const alone = new Map<string, Slot<R>[]>();
  const rest: Slot<R>[] = [];
  for (const slot of slots) {
    const { key } = slot.command;
    if (!apart(key)) rest.push(slot);
    else alone.set(key, [...(alone.get(key) ?? []), slot]);
  }
  return [...together(rest, most), ...[...alone.values()].flatMap((own) => together(own, most))];
}

function together<R>(slots: readonly Slot<R>[], most: number): readonly Chain<R>[] {
  const renewals = slots.filter(isRenewal);
  if (slots.length === 0) return [];
  if (renewals.length === 0) return cut(slots, most);
  if (renewals.length === slots.length) return [[slots]];
  const renewed = new Set(renewals.map(({ command }) => command.key));
  const others = slots.filter((slot) => !isRenewal(slot));
  const both = new Set(others.map(({ command }) => command.key).filter((key) => renewed.has(key)));
  const ofBoth = ({ command }: Slot<R>): boolean => both.has(command.key);
  return [
    [renewals.filter((slot) => !ofBoth(slot))],
    ...(both.size > 0 ? [inSteps(slots.filter(ofBoth))] : []),
    ...cut(
      others.filter((slot) => !ofBoth(slot)),
      most,
    ),
  ].filter(([first]) => first !== undefined && first.length > 0);
}

/** Statements of at most so many commands, all of a key in one of them. */
function cut<R>(slots: readonly Slot<R>[], most: number): readonly Chain<R>[] {
  if (slots.length <= most) return [[slots]];
  const parts: Slot<R>[][] = [];
  const partOf = new Map<string, Slot<R>[]>();
  let last: Slot<R>[] | undefined;
  for (const slot of slots) {
    const known = partOf.get(slot.command.key);
    if (!known && (!last || last.length >= most)) {
      last = [];
      parts.push(last);
    }
    const part = known ?? last;
    part?.push(slot);
    if (part) partOf.set(slot.command.key, part);
  }
  return parts.map((part) => [part]);
}

/** Keys with renewals and other commands in one batch: a step each time that a key goes from one to the other. */
function inSteps<R>(slots: readonly Slot<R>[]): Chain<R> {
  const steps: Slot<R>[][] = [];
  const stepOf = new Map<string, number>();
  for (const slot of slots) {
    const { key } = slot.command;
    const parity = isRenewal(slot) ? 0 : 1;
    const before = stepOf.get(key) ?? parity;
    const step = before % 2 === parity ? before : before + 1;
    stepOf.set(key, step);
    while (steps.length <= step) steps.push([]);
    steps[step]?.push(slot);
  }
  return steps.filter((step) => step.length > 0);
}

export function isRenewal({ command }: { readonly command: Command }): boolean {
  return command.kind === 'renew';
}
