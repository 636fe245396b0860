/** Functions of the user whose failure harms nobody: one that throws, or whose promise rejects, is a warning of the process. */
import { show } from '../protocol/names.js';

/** `what` says what threw. */
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
