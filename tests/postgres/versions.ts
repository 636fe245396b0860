import { isLongRun } from '../long-run.js';

/** Versions of PostgreSQL that the same tests run on: the oldest in `npm test`, all in `npm run test:long`. */
export const VERSIONS: readonly ('15' | '18')[] = isLongRun ? ['15', '18'] : ['15'];
