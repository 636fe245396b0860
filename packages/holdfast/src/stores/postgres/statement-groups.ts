/**
 * Groups the commands of a batch into statements. Renewals never share a statement with other commands, and are sent
 * first: a claim that waits for a row lock would delay them (F14, F30). Commands of one key keep their order.
 */
import type { Command, Reply } from '../../protocol/index.js';

/** A command with its promise. */
export interface PendingCommand {
  readonly command: Command;
  resolve(reply: Reply): void;
  reject(error: unknown): void;
}

/** Statements that run one after the other. The chains of one batch are independent: they share no key. */
export type Chain = readonly (readonly PendingCommand[])[];

/** `apart`: keys whose rows were locked a moment ago; each gets a statement of its own. */
export function chainsOf(
  pending: readonly PendingCommand[],
  apart: (key: string) => boolean,
  most: number,
): readonly Chain[] {
  const alone = new Map<string, PendingCommand[]>();
  const rest: PendingCommand[] = [];
  for (const one of pending) {
    const { key } = one.command;
    if (!apart(key)) rest.push(one);
    else alone.set(key, [...(alone.get(key) ?? []), one]);
  }
  return [...together(rest, most), ...[...alone.values()].flatMap((own) => together(own, most))];
}

function together(pending: readonly PendingCommand[], most: number): readonly Chain[] {
  const renewals = pending.filter(isRenewal);
  if (pending.length === 0) return [];
  if (renewals.length === 0) return cut(pending, most);
  if (renewals.length === pending.length) return [[pending]];
  const renewed = new Set(renewals.map(({ command }) => command.key));
  const others = pending.filter((one) => !isRenewal(one));
  const both = new Set(others.map(({ command }) => command.key).filter((key) => renewed.has(key)));
  const ofBoth = ({ command }: PendingCommand): boolean => both.has(command.key);
  return [
    [renewals.filter((one) => !ofBoth(one))],
    ...(both.size > 0 ? [inSteps(pending.filter(ofBoth))] : []),
    ...cut(
      others.filter((one) => !ofBoth(one)),
      most,
    ),
  ].filter(([first]) => first !== undefined && first.length > 0);
}

/** Statements of at most `most` commands, all commands of a key in the same one. */
function cut(pending: readonly PendingCommand[], most: number): readonly Chain[] {
  if (pending.length <= most) return [[pending]];
  const parts: PendingCommand[][] = [];
  const partOf = new Map<string, PendingCommand[]>();
  let last: PendingCommand[] | undefined;
  for (const one of pending) {
    const known = partOf.get(one.command.key);
    if (!known && (!last || last.length >= most)) {
      last = [];
      parts.push(last);
    }
    const part = known ?? last;
    part?.push(one);
    if (part) partOf.set(one.command.key, part);
  }
  return parts.map((part) => [part]);
}

/** For keys with both renewals and other commands in one batch: each change between the two begins a new step. */
function inSteps(pending: readonly PendingCommand[]): Chain {
  const steps: PendingCommand[][] = [];
  const stepOf = new Map<string, number>();
  for (const one of pending) {
    const { key } = one.command;
    const parity = isRenewal(one) ? 0 : 1;
    const before = stepOf.get(key) ?? parity;
    const step = before % 2 === parity ? before : before + 1;
    stepOf.set(key, step);
    while (steps.length <= step) steps.push([]);
    steps[step]?.push(one);
  }
  return steps.filter((step) => step.length > 0);
}

export function isRenewal({ command }: { readonly command: Command }): boolean {
  return command.kind === 'renew';
}
