/**
 * The client as far as it is used: `schema` and `rpc`, which supabase-js and `@supabase/postgrest-js` share. They resolve
 * with an error instead of rejecting, also when no server was reached. Here the error becomes: a refusal (nothing was
 * done, and a retry will not help), `NotExecutedError` (nothing was reached), or an unknown outcome.
 */
import { InvalidArgumentError, NotExecutedError, UnsupportedError } from '../../protocol/index.js';
import { isObject } from '../../protocol/is-object.js';
import { notExecuted } from '../clients/errors.js';

/** Generated types of a project know only its own schemas, so names are not typed here. */
export interface SupabaseClientLike {
  schema(name: never): SupabaseSchemaLike;
}

/** The client of one schema, as `client.schema(name)` returns it. */
export interface SupabaseSchemaLike {
  rpc(name: never, args: never): PromiseLike<unknown>;
}

/** Calls a function of the schema. Rejects with `UnsupportedError` where it was refused, else with a plain error. */
export type Call = (name: string, args: Readonly<Record<string, unknown>>) => Promise<unknown>;

interface Failure {
  /** As the client gave it. */
  readonly error: unknown;
  /** PostgREST's own, `PGRST…`, or PostgreSQL's SQLSTATE; '' when the error is from neither. */
  readonly code: string;
  readonly message: string;
  /** The HTTP status; 0 when no server was reached. */
  readonly status: number;
}

const NOT_FOUND_CODES = ['PGRST106', 'PGRST202', 'PGRST203', 'PGRST205', '3F000', '42883', '42P01', '42703'];
const NOT_ALLOWED_CODES = ['PGRST300', 'PGRST301', 'PGRST302', 'PGRST303'];
/** PostgREST has no connection to the database, has not read the schema yet, or has no free connection: it sent nothing. */
const NOT_SENT_CODES = ['PGRST000', 'PGRST002', 'PGRST003'];
/** Node's error codes in a text: the client gives the error of `fetch` as text only. */
const CODE_IN_TEXT = /\b(E[A-Z]{4,}|(?:CERT|DEPTH|SELF|UNABLE|ERR_TLS|UND_ERR)_\w+)\b/;
/** A gateway may answer with a long page. */
const MESSAGE_MAX = 300;

export function callOn(client: SupabaseClientLike, schema: string): Call {
  if (typeof client?.schema !== 'function') {
    throw new InvalidArgumentError(
      'supabaseStore needs a client: the result of createClient(url, key) of supabase-js, or a PostgrestClient.',
    );
  }
  return async (name, args) => {
    const answer: unknown = await client.schema(schema as never).rpc(name as never, args as never);
    if (!isObject(answer)) throw new Error('The Supabase client answered nothing.');
    const { data, error, status } = answer;
    if (error === null || error === undefined) return data;
    const failure = failureOf(error, status);
    throw refusalOf(failure, schema) ?? unknownOutcome(failure);
  };
}

function failureOf(error: unknown, status: unknown): Failure {
  const text = (value: unknown): string => (typeof value === 'string' ? value : '');
  const known = isObject(error) ? error : { message: String(error) };
  return {
    error,
    code: text(known.code),
    message: text(known.message) || text(known.details) || 'no message',
    status: typeof status === 'number' ? status : 0,
  };
}

/** Null where the outcome is unknown. */
function refusalOf(
  { code, message, status, error: cause }: Failure,
  schema: string,
): UnsupportedError | null {
  const because = `(${message.slice(0, MESSAGE_MAX)})`;
  if (code === '42501') {
    return new UnsupportedError(
      `This key may not use the schema "${schema}" ${because}. Use the service-role key, on a server only, ` +
        'and run migrate(client, { supabase: true }).',
      { cause },
    );
  }
  const isRoleUnknown = code === '22023' && message.startsWith('role ');
  if (NOT_ALLOWED_CODES.includes(code) || isRoleUnknown || (code === '' && status === 401)) {
    return new UnsupportedError(
      `The key was not accepted ${because}. Use the service-role key of this project, as it is now.`,
      { cause },
    );
  }
  if (NOT_FOUND_CODES.includes(code) || (code === '' && (status === 404 || status === 406))) {
    return new UnsupportedError(
      `The schema "${schema}" was not found ${because}. Run migrate(client, { supabase: true }) over a ` +
        `connection to the database, and expose the schema "${schema}" in the project's API settings.`,
      { cause },
    );
  }
  return null;
}

/** The engine repeats the commands to find out whether they were executed, unless no server was reached. */
function unknownOutcome({ error, code, message, status }: Failure): Error {
  const details = isObject(error) && typeof error.details === 'string' ? error.details : '';
  const [word] = CODE_IN_TEXT.exec(`${message} ${details}`) ?? [];
  const certain =
    status === 0 && word ? notExecuted(Object.assign(new Error(message), { code: word })) : null;
  if (certain) return certain;
  const where = status === 0 ? 'Supabase was not reached' : `Supabase answered with status ${status}`;
  const short = message.length > MESSAGE_MAX ? `${message.slice(0, MESSAGE_MAX)}…` : message;
  // The code, if it is an SQLSTATE, says whether the server undid the call.
  const text = `${where}: ${short}${code === '' ? '' : ` (${code})`}`;
  if (NOT_SENT_CODES.includes(code)) return new NotExecutedError(text, 'while-waiting', error);
  return Object.assign(new Error(text, { cause: error }), { code });
}
