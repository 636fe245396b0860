/** Hides holds in the errors of a store. Drivers put whole statements into their errors, and errors are logged. */
import { HoldfastError } from 'holdfast';
import type { Command } from 'holdfast/protocol';

const CAUSES_MAX = 5;

/** One letter: secrets are whatever clients say, and what is put in their place must not be longer than any of them. */
const HIDDEN = '…';

/** For the errors that these commands end with. */
export function concealer(commands: readonly Command[]): (error: unknown) => unknown {
  let secrets: RegExp | null = null;
  return (error) => {
    secrets ??= patternOf(secretsIn(commands));
    return concealed(error, secrets);
  };
}

function secretsIn(commands: readonly Command[]): readonly string[] {
  const secrets = new Set<string>();
  for (const command of commands) {
    if (command.kind !== 'evict') secrets.add(command.hold.process);
    if (command.kind === 'claim' && command.inbox !== null) secrets.add(command.inbox);
  }
  return [...secrets];
}

/** The same error where nothing of the kind is in it, which is nearly always. */
function concealed(error: unknown, secrets: RegExp, depth = 0): unknown {
  if (!(error instanceof Error)) {
    const text = String(error);
    const clean = text.replaceAll(secrets, HIDDEN);
    return clean === text ? error : clean;
  }
  const cause =
    error.cause === undefined || depth > CAUSES_MAX ? undefined : concealed(error.cause, secrets, depth + 1);
  const message = error.message.replaceAll(secrets, HIDDEN);
  const stack = error.stack?.replaceAll(secrets, HIDDEN);
  if (message === error.message && stack === error.stack && cause === error.cause) return error;
  // Its kind says what to do next, so it stays what it is.
  const clean = error instanceof HoldfastError ? error : new Error('');
  clean.message = message;
  clean.stack = stack ?? '';
  clean.cause = cause;
  return clean;
}

export function blanked(text: string, secrets: readonly string[]): string {
  return text.replaceAll(patternOf(secrets), HIDDEN);
}

/** All of them in one pass, the longest first: one may begin with another. */
function patternOf(secrets: readonly string[]): RegExp {
  const texts = secrets.filter((secret) => secret !== '').toSorted((a, b) => b.length - a.length);
  const parts = texts.map((text) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(parts.length > 0 ? parts.join('|') : '(?!)', 'g');
}
