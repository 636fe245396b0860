/**
 * Creates the schema, or brings it up to date. Only on request: no constructor migrates.
 *
 * The migration is one statement, a DO block, so it is atomic for every sender: a driver, psql, a migration tool, a pooler
 * in transaction mode. It takes an advisory lock first: of several concurrent migrations one does the work, and the others
 * find it done. An up-to-date schema is only read, which needs no right to create anything.
 */
import { InvalidArgumentError, StoreError, UnsupportedError } from '../../protocol/index.js';
import { checkOptionNames } from '../../protocol/option-names.js';
import { columnIn, lastRows, type PgLike, type PostgresClient, type PostgresJsLike } from './clients.js';
import { sqlState } from './errors.js';
import { FOUND_SETTING, latestOf, NAME_TAKEN, NEWER, scriptOf } from './migration-script.js';
import { MIGRATIONS } from './migrations.js';
import { isPglite } from './pglite.js';
import { checkSchema, quoteName, SCHEMA } from './sql/names.js';

export interface MigrateOptions {
  /** Default `holdfast`. */
  readonly schema?: string;
  /**
   * Also give `service_role` the rights that Supabase's HTTP interface needs, and take all rights on Holdfast's tables
   * and functions from everybody else. Default false.
   */
  readonly supabase?: boolean;
}

export interface Migrated {
  /** The version found; 0 for none. */
  readonly from: number;
  /** The version now. */
  readonly to: number;
}

/** Under stricter isolation levels a concurrent migration makes this one fail; repeated, it finds the work done. */
const SERIALIZATION_FAILURE = '40001';
const FAILED_TRANSACTION = '25P02';
const TRIES_MAX = 5;

export async function migrate(client: PostgresClient, options: MigrateOptions = {}): Promise<Migrated> {
  const { schema } = checked(options);
  const run = runner(client);
  const text = `${migrationSql(options)}\nSELECT current_setting('${FOUND_SETTING}') AS found;`;
  let missed: unknown;
  for (let tries = 1; ; tries++) {
    try {
      return { from: Number(columnIn(lastRows(await run(text)), 'found')), to: latestOf(MIGRATIONS) };
    } catch (error) {
      // In the caller's transaction a repetition cannot work: report the first failure.
      if (sqlState(error) === FAILED_TRANSACTION) throw explain(missed ?? error, schema);
      if (sqlState(error) !== SERIALIZATION_FAILURE || tries >= TRIES_MAX) throw explain(error, schema);
      missed = error;
    }
  }
}

/** The SQL that `migrate` runs, to be read, or run by other tools. Safe to run again. */
export function migrationSql(options: MigrateOptions = {}): string {
  const { schema, supabase } = checked(options);
  return scriptOf(MIGRATIONS, schema, supabase);
}

function checked(options: MigrateOptions): Required<MigrateOptions> {
  checkOptionNames(options, ['schema', 'supabase']);
  const { schema = SCHEMA, supabase = false } = options;
  if (typeof supabase !== 'boolean') throw new InvalidArgumentError('supabase has to be true or false.');
  return { schema: checkSchema(schema), supabase };
}

/** Without parameters both drivers send the text unchanged, and the server runs it as one transaction. */
function runner(client: PostgresClient): (text: string) => PromiseLike<unknown> {
  const some = client as Partial<Record<'unsafe' | 'query', unknown>> | null | undefined;
  if (typeof some?.unsafe === 'function') return (text) => (client as PostgresJsLike).unsafe(text);
  if (isPglite(client)) return (text) => client.exec(text);
  if (typeof some?.query === 'function') return (text) => (client as PgLike).query({ text });
  throw new InvalidArgumentError(
    'migrate needs a Pool or a Client of pg, what postgres(url) gives, or a PGlite.',
  );
}

function explain(cause: unknown, schema: string): Error {
  const said = cause instanceof Error ? cause.message : String(cause);
  const hint = isObject(cause) && typeof cause.hint === 'string' ? ` ${cause.hint}` : '';
  switch (sqlState(cause)) {
    case NEWER:
    case NAME_TAKEN:
    case '0A000':
      return new UnsupportedError(`${said}${hint}`, { cause });
    case '42501':
      return new UnsupportedError(
        `The schema ${quoteName(schema)} could not be made or brought up to date: ${said}${hint} ` +
          'Grant that, or let somebody with more rights run what migrationSql() gives, or `holdfast migrate --store URL --print`. ' +
          'Nothing was changed.',
        { cause },
      );
    default:
      return new StoreError(`The schema ${quoteName(schema)} could not be migrated: ${said}`, {
        operation: 'migrate',
        cause,
      });
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
