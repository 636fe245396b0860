/** The SQLite that the store itself uses: two copies of it in one process do not see each other's locks. */
import * as installed from '@photostructure/sqlite';

type Module = Pick<typeof installed, 'DatabaseSync'>;

export const { DatabaseSync } =
  (process.getBuiltinModule?.('node:sqlite') as Module | undefined) ?? installed;
