/**
 * The clients that a store accepts, typed by the few methods that are used, and one interface over all of them. With pg,
 * statements are named, so that the server parses each once per connection. Behind a pooler in transaction mode the next
 * statement may meet another connection (F15): after the first such error, the store uses no more names.
 */
import { createHash } from 'node:crypto';
import { InvalidArgumentError } from '../../protocol/index.js';
import { isObject } from '../../protocol/is-object.js';
import { KEEP_ALIVE_MS } from '../clients/opened-client.js';
import { oneAtATime } from './one-at-a-time.js';
import { isPglite, type Pglite, type PgliteLike, pgliteWakeListener } from './pglite.js';
import { postgresJsWakeListener } from './postgres-js-listener.js';
import { quoteText } from './sql/names.js';
import { type ListenClient, pgWakeListener, type WakeListener } from './wake-listener.js';

interface PgQuery {
  readonly text: string;
  readonly name?: string;
  values?: unknown[];
  readonly query_timeout?: number;
}

/** `pg`: a Pool, or a connected Client that is not used for transactions elsewhere. */
export interface PgLike {
  query(query: PgQuery): Promise<unknown>;
}

/** `postgres`: the result of `postgres(url)`. */
export interface PostgresJsLike {
  unsafe(text: string): PromiseLike<readonly unknown[]>;
  listen(channel: string, hear: (payload: string) => void): PromiseLike<{ unlisten(): Promise<void> }>;
}

/** A pool or client of pg, an instance of postgres, or a PGlite. */
export type PostgresClient = PgLike | PostgresJsLike | PgliteLike;

/** Receives wake-ups: a function that makes a new Client of `pg`, another `postgres(url)`, or false for none. */
export type PostgresListener = (() => ListenClient) | PostgresJsLike | false;

export interface Database {
  /** The rows of one statement with `$1` and so on. Renewals (`urgent`) go first on a shared connection. */
  rows(text: string, values: readonly (string | null)[], urgent?: boolean): Promise<readonly unknown[]>;
  /** Several statements in one message, as one transaction. Returns the rows of the last one. */
  script(text: string, urgent?: boolean): Promise<readonly unknown[]>;
  /** The most commands per statement. */
  readonly mostTogether: number;
  /** Null if no wake-ups can be received. */
  readonly listener: WakeListener | null;
}

/** A dead connection must not stay in the pool for ever. */
const QUERY_TIMEOUT_MS = 5_000;
/** With several connections, client and server work in parallel when a batch is split. */
const TOGETHER_MAX = 32;

export function databaseOn(client: PostgresClient, listener: PostgresListener | undefined): Database {
  if (isPostgresJs(client)) return onPostgresJs(client, listener);
  if (isPglite(client)) return onPglite(client, listener);
  if (isPg(client)) return onPg(client, listener);
  throw new InvalidArgumentError(
    'postgresStore needs a Pool or a Client of pg, the result of postgres(url), or a PGlite, as its first argument.',
  );
}

function onPostgresJs(sql: PostgresJsLike, listener: PostgresListener | undefined): Database {
  // No parameters: the driver would ask for their types first, with two round trips per statement.
  const inline = (text: string, values: readonly (string | null)[]): string =>
    text.replace(/\$(\d+)/g, (_, place: string) => {
      const value = values[Number(place) - 1] ?? null;
      return value === null ? 'NULL' : quoteText(value);
    });
  return {
    mostTogether: TOGETHER_MAX,
    rows: async (text, values) => lastRows(await sql.unsafe(inline(text, values))),
    script: async (text) => lastRows(await sql.unsafe(text)),
    listener: listenerOf(listener, () => postgresJsWakeListener(sql)),
  };
}

function onPglite(pglite: Pglite, listener: PostgresListener | undefined): Database {
  const run = oneAtATime((ask: () => Promise<unknown>) => ask());
  return {
    mostTogether: Number.POSITIVE_INFINITY,
    rows: async (text, values, urgent) => lastRows(await run(() => pglite.query(text, [...values]), urgent)),
    script: async (text, urgent) => lastRows(await run(() => pglite.exec(text), urgent)),
    listener: listenerOf(listener, () => pgliteWakeListener(pglite)),
  };
}

interface PgInside {
  readonly Client?: new (options: object) => ListenClient;
  readonly options?: Readonly<Record<string, unknown>>;
  readonly connectionParameters?: Readonly<Record<string, unknown>>;
  getTransactionStatus?(): string | null;
  readonly connection?: {
    on(event: 'readyForQuery', run: (message: { readonly status?: string }) => void): unknown;
  };
}

function onPg(client: PgLike & PgInside, listener: PostgresListener | undefined): Database {
  const isPool = client.connectionParameters === undefined;
  const own =
    isPool && client.options?.query_timeout === undefined ? { query_timeout: QUERY_TIMEOUT_MS } : {};
  const checkAlone = isPool ? () => undefined : transactionCheck(client);
  const send = async (query: PgQuery): Promise<unknown> => {
    checkAlone();
    const result = await client.query({ ...query, ...own });
    // Check again: a BEGIN may have been in flight, and the transaction could undo the command.
    checkAlone();
    return result;
  };
  const query = isPool ? send : oneAtATime(send);
  const nameOf = names();
  let named = true;
  return {
    mostTogether: isPool ? TOGETHER_MAX : Number.POSITIVE_INFINITY,
    async rows(text, values, urgent = false) {
      if (named) {
        try {
          return lastRows(await query({ name: nameOf(text), text, values: [...values] }, urgent));
        } catch (error) {
          if (!isUnknownStatement(error)) throw error;
          named = false;
        }
      }
      return lastRows(await query({ text, values: [...values] }, urgent));
    },
    script: async (text, urgent = false) => lastRows(await query({ text }, urgent)),
    listener: listenerOf(listener, () => siblingListener(client, isPool)),
  };
}

/** Gives a text the same name in every process, so that any of them can prepare the statement on a shared connection. */
function names(): (text: string) => string {
  const known = new Map<string, string>();
  return (text) => {
    let name = known.get(text);
    if (name === undefined) {
      name = `holdfast_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`;
      known.set(text, name);
    }
    return name;
  };
}

/** Whether the connection does not know the name, or knows it already. Then nothing was executed. */
function isUnknownStatement(error: unknown): boolean {
  return isObject(error) && (error.code === '26000' || error.code === '42P05');
}

/** Throws inside a transaction: a command would become part of it, and be undone with it. */
function transactionCheck(client: PgInside): () => void {
  let last: string | null = null;
  // Before 8.21 a Client does not report its status, but its connection does, after every statement.
  if (!client.getTransactionStatus) {
    client.connection?.on('readyForQuery', ({ status }) => {
      last = status ?? null;
    });
  }
  return () => {
    const status = client.getTransactionStatus?.() ?? last;
    if (status !== 'T' && status !== 'E') return;
    throw new Error('This Client is inside a transaction: give the store one of its own, or a Pool.');
  };
}

/** Opens a connection for listening with the options of the pool or Client. */
function siblingListener(client: PgLike & PgInside, isPool: boolean): WakeListener | null {
  const make = isPool ? client.Client : (client.constructor as PgInside['Client']);
  const options = isPool ? client.options : client.connectionParameters;
  if (typeof make !== 'function' || !isObject(options)) return null;
  // The connection is idle: without keep-alives a network drops it after minutes, without notice. By default the first
  // keep-alive would be sent after two hours.
  const keepAliveInitialDelayMillis = options.keepAliveInitialDelayMillis || KEEP_ALIVE_MS;
  return pgWakeListener(() => {
    const copy = { ...options, keepAlive: true, keepAliveInitialDelayMillis };
    // Not enumerable, so that it is not printed; therefore the spread above did not copy it.
    Object.defineProperty(copy, 'password', { value: options.password, enumerable: false });
    return new make(copy);
  });
}

function listenerOf(
  listener: PostgresListener | undefined,
  otherwise: () => WakeListener | null,
): WakeListener | null {
  if (listener === undefined) return otherwise();
  if (listener === false) return null;
  if (isPostgresJs(listener)) return postgresJsWakeListener(listener);
  if (typeof listener === 'function') return pgWakeListener(listener);
  throw new InvalidArgumentError(
    'listener has to be a function that returns a new Client of pg, or the result of postgres(url), or false.',
  );
}

function isPg(client: PostgresClient): client is PgLike {
  return isObject(client) && typeof client.query === 'function';
}

function isPostgresJs(client: unknown): client is PostgresJsLike {
  if (typeof client !== 'function' || !('unsafe' in client) || !('listen' in client)) return false;
  return typeof client.unsafe === 'function' && typeof client.listen === 'function';
}

/** pg wraps rows in a result; both drivers return a list of results for several statements. */
export function lastRows(result: unknown): readonly unknown[] {
  const last: unknown =
    Array.isArray(result) && Array.isArray(resultRows(result.at(-1))) ? result.at(-1) : result;
  const rows = resultRows(last);
  return Array.isArray(rows) ? rows : [];
}

function resultRows(result: unknown): unknown {
  return isObject(result) && 'rows' in result ? result.rows : result;
}

/** The values of the only row, in the order of its columns: a client may rename columns (`transform` of postgres). */
export function valuesIn(rows: readonly unknown[]): readonly unknown[] {
  return Object.values(rows[0] ?? {});
}

/** The first value of the only row, as text. `what`: its name in the statement. */
export function textIn(rows: readonly unknown[], what: string): string | null {
  const [text] = valuesIn(rows);
  if (typeof text === 'string' || text === null) return text;
  throw new Error(`PostgreSQL answered without the column "${what}".`);
}

/** JSON comes as text, since clients parse JSON differently. */
export function jsonIn(rows: readonly unknown[], what: string): unknown {
  const text = textIn(rows, what);
  return text === null ? null : JSON.parse(text);
}
