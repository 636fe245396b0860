/**
 * Creates the schema, or brings it up to date. This happens only on request, never in a constructor.
 *
 * The migration is one statement, a DO block, so it is atomic for every sender: a driver, psql, a migration tool, a pooler
 * in transaction mode. It takes an advisory lock first: of several concurrent migrations one does the work, and the others
 * find it done. A schema that is up to date is only read, which needs no right to create anything.
 */
import { InvalidArgumentError, StoreError, UnsupportedError } from '../../protocol/index.js';
import { isObject } from '../../protocol/is-object.js';
import { checkOptionNames } from '../../protocol/option-names.js';
import { messageOf } from '../clients/errors.js';
import { lastRows, type PgLike, type PostgresClient, type PostgresJsLike, textIn } from './clients.js';
import { sqlState } from './errors.js';
import { type Place, type PostgresLayout, placeOf } from './layout.js';
import { FOUND_SETTING, latestOf, NAME_TAKEN, NEWER, scriptOf } from './migration-script.js';
import { MIGRATIONS } from './migrations.js';
import { isPglite } from './pglite.js';
import { checkSchema, quoteName, SCHEMA } from './sql/names.js';

/** Options of `migrate`. */
export interface MigrateOptions {
  /** Default `holdfast`; with a layout, the schema of its table, default `public`. */
  readonly schema?: string;
  /**
   * The table of other software instead of the schema, a layout of `holdfast/postgres/layouts`: adds the column that
   * Holdfast needs, and creates a missing table. The functions of the other software stay as they are. Default none.
   */
  readonly layout?: PostgresLayout;
  /** With a layout: the name of its table. Default `distributed_locks` or `locks`. */
  readonly table?: string;
  /**
   * Also give `service_role` the rights that Supabase's HTTP interface needs, and take all rights on Holdfast's tables
   * and functions from everybody else. Default false.
   */
  readonly supabase?: boolean;
}

/** The result of `migrate`. */
export interface Migrated {
  /** The version found; 0 for none. */
  readonly from: number;
  /** The version now. */
  readonly to: number;
}

/** Under stricter isolation levels a concurrent migration makes this one fail. A repetition finds the work done. */
const SERIALIZATION_FAILURE = '40001';
const FAILED_TRANSACTION = '25P02';
const TRIES_MAX = 5;

/**
 * Creates the schema with its tables and functions, or brings an older one to this version. Safe to run again and
 * from several processes.
 */
export async function migrate(client: PostgresClient, options: MigrateOptions = {}): Promise<Migrated> {
  const { schema, place } = checked(options);
  const run = runner(client);
  const what = place ? `table ${quoteName(schema)}.${quoteName(place.table)}` : `schema ${quoteName(schema)}`;
  const to = place ? 1 : latestOf(MIGRATIONS);
  const text = `${migrationSql(options)}\nSELECT current_setting('${FOUND_SETTING}') AS found;`;
  let missed: unknown;
  for (let tries = 1; ; tries++) {
    try {
      return { from: Number(textIn(lastRows(await run(text)), 'found')), to };
    } catch (error) {
      // In the caller's transaction a repetition cannot work: report the first failure.
      if (sqlState(error) === FAILED_TRANSACTION) throw explain(missed ?? error, what);
      if (sqlState(error) !== SERIALIZATION_FAILURE || tries >= TRIES_MAX) throw explain(error, what);
      missed = error;
    }
  }
}

/** The SQL that `migrate` runs, to be read, or run by other tools. Safe to run again. */
export function migrationSql(options: MigrateOptions = {}): string {
  const { schema, supabase, place } = checked(options);
  return place ? place.layout.script(place, FOUND_SETTING) : scriptOf(MIGRATIONS, schema, supabase);
}

function checked(options: MigrateOptions): {
  readonly schema: string;
  readonly supabase: boolean;
  readonly place: Place | null;
} {
  checkOptionNames(options, ['schema', 'supabase', 'layout', 'table']);
  const { schema = SCHEMA, supabase = false } = options;
  if (typeof supabase !== 'boolean') throw new InvalidArgumentError('supabase has to be true or false.');
  const place = placeOf(options);
  if (place && supabase) {
    throw new InvalidArgumentError(
      'supabase cannot be given with a layout: rights on the table stay as the other software has them.',
    );
  }
  return { schema: place?.schema ?? checkSchema(schema), supabase, place };
}

/** Without parameters both drivers send the text unchanged, and the server runs it as one transaction. */
function runner(client: PostgresClient): (text: string) => PromiseLike<unknown> {
  const some = client as Partial<Record<'unsafe' | 'query', unknown>> | null | undefined;
  if (typeof some?.unsafe === 'function') return (text) => (client as PostgresJsLike).unsafe(text);
  if (isPglite(client)) return (text) => client.exec(text);
  if (typeof some?.query === 'function') return (text) => (client as PgLike).query({ text });
  throw new InvalidArgumentError(
    'migrate needs a Pool or a Client of pg, the result of postgres(url), or a PGlite.',
  );
}

function explain(cause: unknown, what: string): Error {
  const said = messageOf(cause);
  const hint = isObject(cause) && typeof cause.hint === 'string' ? ` ${cause.hint}` : '';
  switch (sqlState(cause)) {
    case NEWER:
    case NAME_TAKEN:
    case '0A000':
      return new UnsupportedError(`${said}${hint}`, { cause });
    case '42501':
      return new UnsupportedError(
        `The ${what} could not be made or brought up to date: ${said}${hint} ` +
          'Grant that, or have a user with more rights run the SQL of migrationSql() or `holdfast migrate --store URL --print`. ' +
          'Nothing was changed.',
        { cause },
      );
    default:
      return new StoreError(`The ${what} could not be migrated: ${said}`, {
        operation: 'migrate',
        cause,
      });
  }
}
