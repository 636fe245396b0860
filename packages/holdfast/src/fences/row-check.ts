/** What a count of changed rows means: written, refused because a later holder has written, or no such row. */
import { InvalidArgumentError, LeaseLostError } from '../protocol/errors.js';
import { keepName } from '../protocol/keep-name.js';
import { checkToken } from './token.js';

/**
 * Nothing was written, and no later holder is the reason: there is no such row, or another condition of the statement did
 * not hold. The lease may still be held.
 */
export class NoRowChangedError extends InvalidArgumentError {
  static {
    keepName(NoRowChangedError, 'NoRowChangedError');
  }
}

export interface RowCheck {
  readonly rowsChanged: number | bigint;
  readonly token: number;
  /** Read after nothing was changed; undefined where nobody looked. */
  readonly rows: readonly unknown[] | undefined;
  readonly column: string;
  /** There a count of 0 has more causes. None is proof of a write. */
  readonly isMysql: boolean;
}

export function checkRows({ rowsChanged, token, rows, column, isMysql }: RowCheck): void {
  checkToken(token);
  const isCount = typeof rowsChanged === 'bigint' || Number.isSafeInteger(rowsChanged);
  if (!isCount || rowsChanged < 0) {
    throw new InvalidArgumentError(
      `The guard needs the number of rows that the driver says were changed, not ${String(rowsChanged)}.`,
    );
  }
  if (rowsChanged > 0) return;
  const nothing = `Nothing was written with token ${token}`;
  if (rows === undefined) {
    const text = `${nothing}: a later holder has written, or there is no such row. Roll back, and stop.`;
    throw new LeaseLostError(text, { reason: 'replaced' });
  }
  const stored = storedTokens(rows, column);
  const highest = Math.max(...stored);
  if (highest > token) {
    const text = `${nothing}: a later holder has written, with token ${highest}. Roll back, and stop.`;
    throw new LeaseLostError(text, { reason: 'replaced' });
  }
  if (stored.length === 0) throw new NoRowChangedError(`${nothing}: there is no such row.`);
  const otherCauses = isMysql
    ? ' Or the row was already so, and the connection does not count it (set FOUND_ROWS). Or the row was read without FOR UPDATE, and is one of the past.'
    : '';
  throw new NoRowChangedError(
    `${nothing}, and the row shows no later holder: another condition of the statement did not hold.${otherCauses}`,
  );
}

/** Drivers return a BIGINT as a number, a bigint or a text. A row older than the column has none. */
function storedTokens(rows: unknown, column: string): readonly number[] {
  if (!Array.isArray(rows)) throw new InvalidArgumentError('The rows of the SELECT have to be a list.');
  return rows.map((row: unknown) => {
    const isRow = typeof row === 'object' && row !== null && column in row;
    const stored = isRow ? Number((row as Readonly<Record<string, unknown>>)[column] ?? 0) : Number.NaN;
    if (Number.isSafeInteger(stored)) return stored;
    throw new InvalidArgumentError(`A row that tells why nothing was changed has the column "${column}".`);
  });
}
