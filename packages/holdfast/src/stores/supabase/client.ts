/**
 * The client as far as it is used: `schema` and `rpc`, which supabase-js and `@supabase/postgrest-js` have alike.
 * They resolve with an error instead of rejecting, also when nothing was reached; here that is told apart again.
 */
import { InvalidArgumentError } from '../../protocol/index.js';
import { notExecuted } from '../clients/errors.js';
import { type Answer, refusalOf } from './refusals.js';

/** The types that people generate from their project know only its own schemas, so names are not looked at. */
export interface SupabaseClientLike {
  schema(name: never): SupabaseSchemaLike;
}

export interface SupabaseSchemaLike {
  rpc(name: never, args: never): PromiseLike<unknown>;
}

/** Calls a function of the schema. Rejects with `UnsupportedError` where it was refused, else with a plain error. */
export type Call = (name: string, args: Readonly<Record<string, unknown>>) => Promise<unknown>;

export function callerOf(client: SupabaseClientLike, schema: string): Call {
  if (typeof client?.schema !== 'function') {
    throw new InvalidArgumentError(
      'supabaseStore needs a client: what createClient(url, key) of supabase-js gives, or a PostgrestClient.',
    );
  }
  return async (name, args) => {
    const answer: unknown = await client.schema(schema as never).rpc(name as never, args as never);
    if (!isObject(answer)) throw new Error('The Supabase client answered nothing.');
    const { data, error, status } = answer;
    if (error === null || error === undefined) return data;
    throw refusalOf(said(error, status), schema) ?? trouble(said(error, status));
  };
}

function said(error: unknown, status: unknown): Answer {
  const text = (value: unknown): string => (typeof value === 'string' ? value : '');
  const known = isObject(error) ? error : { message: String(error) };
  return {
    error,
    code: text(known.code),
    message: text(known.message) || text(known.details) || 'no message',
    status: typeof status === 'number' ? status : 0,
  };
}

/** Codes of Node in a text: the client gives the error of `fetch` as text only. */
const CODE_IN_TEXT = /\b(E[A-Z]{4,}|(?:CERT|DEPTH|SELF|UNABLE|ERR_TLS|UND_ERR)_\w+)\b/;

/** Whether the commands were executed is for the engine to find out, by asking again, unless nothing was reached. */
function trouble({ error, code, message, status }: Answer): Error {
  const details = isObject(error) && typeof error.details === 'string' ? error.details : '';
  const [word] = CODE_IN_TEXT.exec(`${message} ${details}`) ?? [];
  const certain =
    status === 0 && word ? notExecuted(Object.assign(new Error(message), { code: word })) : null;
  if (certain) return certain;
  const where = status === 0 ? 'Supabase was not reached' : `Supabase answered with status ${status}`;
  // A page of a gateway in between may be long.
  const short = message.length > 300 ? `${message.slice(0, 300)}…` : message;
  return new TroubleError(`${where}: ${short}${code === '' ? '' : ` (${code})`}`, code, { cause: error });
}

/** Keeps the SQLSTATE, by which it is told whether the server undid the call. */
class TroubleError extends Error {
  readonly code: string;

  constructor(message: string, code: string, options: ErrorOptions) {
    super(message, options);
    this.name = 'TroubleError';
    this.code = code;
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return (typeof value === 'object' || typeof value === 'function') && value !== null;
}
