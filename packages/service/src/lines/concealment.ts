/** Stores put whole statements into their errors. What leaves the desk has no hold in it, whoever logs it then. */
import { HoldfastError } from 'holdfast';
import type { Command } from 'holdfast/protocol';

const CAUSES_MAX = 5;

export function secretsOf(commands: readonly Command[]): readonly string[] {
  const secrets = new Set<string>();
  for (const command of commands) {
    if (command.kind !== 'evict') secrets.add(command.hold.process);
    if (command.kind === 'claim' && command.inbox !== null) secrets.add(command.inbox);
  }
  return [...secrets];
}

/** The same error where nothing of the kind is in it, which is nearly always. */
export function concealed(error: unknown, secrets: readonly string[], depth = 0): unknown {
  if (!(error instanceof Error)) {
    const text = String(error);
    return isTold(text, secrets) ? blanked(text, secrets) : error;
  }
  const cause =
    error.cause === undefined || depth > CAUSES_MAX ? undefined : concealed(error.cause, secrets, depth + 1);
  const { message, stack = '' } = error;
  if (!isTold(message, secrets) && !isTold(stack, secrets) && cause === error.cause) return error;
  // Its kind says what to do next, so it stays what it is.
  const clean = error instanceof HoldfastError ? error : new Error('');
  clean.message = blanked(message, secrets);
  clean.stack = blanked(stack, secrets);
  clean.cause = cause;
  return clean;
}

function isTold(text: string, secrets: readonly string[]): boolean {
  return secrets.some((secret) => text.includes(secret));
}

export function blanked(text: string, secrets: readonly string[]): string {
  let clean = text;
  for (const secret of secrets) clean = clean.replaceAll(secret, '[hidden]');
  return clean;
}
