/** Stores put whole statements into their errors. What leaves the desk has no hold in it, whoever logs it then. */
import { HoldfastError } from 'holdfast';
import type { Command } from 'holdfast/protocol';

const CAUSES_MAX = 5;

/** What must not be seen of one batch. */
export class Secrets {
  readonly #commands: readonly Command[];
  #texts: readonly string[] | null = null;
  /** What was looked through: in an outage all of a batch fail with the same words. */
  readonly #told = new Map<string, boolean>();

  constructor(commands: readonly Command[]) {
    this.#commands = commands;
  }

  areIn(text: string): boolean {
    const known = this.#told.get(text);
    if (known !== undefined) return known;
    const told = this.#all().some((secret) => text.includes(secret));
    this.#told.set(text, told);
    return told;
  }

  blankedIn(text: string): string {
    return blanked(text, this.#all());
  }

  #all(): readonly string[] {
    this.#texts ??= secretsOf(this.#commands);
    return this.#texts;
  }
}

function secretsOf(commands: readonly Command[]): readonly string[] {
  const secrets = new Set<string>();
  for (const command of commands) {
    if (command.kind !== 'evict') secrets.add(command.hold.process);
    if (command.kind === 'claim' && command.inbox !== null) secrets.add(command.inbox);
  }
  return [...secrets];
}

/** The same error where nothing of the kind is in it, which is nearly always. */
export function concealed(error: unknown, secrets: Secrets, depth = 0): unknown {
  if (!(error instanceof Error)) {
    const text = String(error);
    return secrets.areIn(text) ? secrets.blankedIn(text) : error;
  }
  const cause =
    error.cause === undefined || depth > CAUSES_MAX ? undefined : concealed(error.cause, secrets, depth + 1);
  const { message, stack = '' } = error;
  if (!secrets.areIn(message) && !secrets.areIn(stack) && cause === error.cause) return error;
  // Its kind says what to do next, so it stays what it is.
  const clean = error instanceof HoldfastError ? error : new Error('');
  clean.message = secrets.blankedIn(message);
  clean.stack = secrets.blankedIn(stack);
  clean.cause = cause;
  return clean;
}

export function blanked(text: string, secrets: readonly string[]): string {
  let clean = text;
  for (const secret of secrets) clean = clean.replaceAll(secret, '[hidden]');
  return clean;
}
