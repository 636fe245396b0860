/** Client packages are the user's to install. Here they are loaded when a URL asks for one, or missed in one line. */
import { UnsupportedError } from '../protocol/index.js';

/** One that can be used: its name, and how it is loaded and set up. */
export interface Candidate<T> {
  readonly name: string;
  /** Rejects with `NotInstalled` where the package is missing. */
  load(): Promise<T>;
}

class NotInstalled extends Error {}

/**
 * For the `catch` of an `import()`. Each has its own `try`, with the name written out: bundlers then include a package that
 * is installed, and leave the import of a missing one as it is, where they would fail otherwise.
 */
export function importError(name: string, error: unknown): unknown {
  return isMissing(error, name) ? new NotInstalled(`${name} is not installed.`, { cause: error }) : error;
}

/** The first that is installed. One that is installed but broken is not passed over in silence. */
export async function loadFirst<T>(what: string, candidates: readonly Candidate<T>[]): Promise<T> {
  const missing: unknown[] = [];
  for (const { load } of candidates) {
    try {
      return await load();
    } catch (error) {
      if (!(error instanceof NotInstalled)) throw error;
      missing.push(error);
    }
  }
  const [first, ...others] = candidates.map(({ name }) => name);
  const instead = others.length > 0 ? ` (or ${others.join(', ')})` : '';
  throw new UnsupportedError(
    `A client package for ${what} is needed, and none is installed: npm install ${first}${instead}.`,
    { cause: missing[0] },
  );
}

function isMissing(error: unknown, name: string): boolean {
  if (!(error instanceof Error) || !('code' in error)) return false;
  const isModule = error.code === 'ERR_MODULE_NOT_FOUND' || error.code === 'MODULE_NOT_FOUND';
  // A package that it needs itself may be what is not found.
  return isModule && error.message.includes(`'${name}'`);
}
