/** Calls functions of the user. If one throws, or its promise rejects, the process gets a warning, nothing more. */
import { show } from '../protocol/names.js';

/** `what`: the function, for the warning. */
export function callOrWarn(call: () => unknown, what: string): void {
  try {
    const returned = call();
    // Without a handler, the rejection of an async function would end the process.
    if (returned !== undefined) Promise.resolve(returned).catch((error) => warn(what, error));
  } catch (error) {
    warn(what, error);
  }
}

export function warn(what: string, error: unknown): void {
  process.emitWarning(`${what}: ${error instanceof Error ? error.stack : show(error)}`);
}
