/** Client packages are the user's to install. Here they are loaded when a URL asks for one, or missed in one line. */
import { UnsupportedError } from '../protocol/index.js';

/** One that can be used: its name, and how it is loaded and set up. */
export interface Candidate<T> {
  readonly name: string;
  load(): Promise<T>;
}

/** The first that is installed. One that is installed but broken is not passed over in silence. */
export async function loadFirst<T>(what: string, candidates: readonly Candidate<T>[]): Promise<T> {
  const missing: unknown[] = [];
  for (const { name, load } of candidates) {
    try {
      return await load();
    } catch (error) {
      if (!isMissing(error, name)) throw error;
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
