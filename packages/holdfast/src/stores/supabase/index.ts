/**
 * The Supabase store: the PostgreSQL store's table and functions through PostgREST, so both exclude each other.
 *
 * Layout and atomicity are those of the PostgreSQL store: `apply` decides a batch in one transaction of the server.
 * Renewals go in a call of their own. A row that another transaction keeps locked fails the whole call, undone; its
 * commands are then sent one by one, so that only those of that row fail.
 *
 * Clock: the database server's.
 *
 * HTTP brings no wake-ups: waiters keep their place in the queue and poll.
 *
 * A lost reply: what the server committed stays. The outcome is unknown, and the engine repeats the command with the same
 * hold. A refusal, such as a missing right, is known: nothing was done.
 */
import { type Guarantees, type Store, type Traits, UnsupportedError } from '../../protocol/index.js';
import { checkOptionNames } from '../../protocol/option-names.js';
import { notExecuted } from '../clients/errors.js';
import { findingsOf, note, warning } from '../clients/findings.js';
import { answersIn, CommandSender, type Transport } from '../postgres/command-sender.js';
import { isLockedOut, lockedOutError } from '../postgres/errors.js';
import { type About, serverFindings } from '../postgres/probe.js';
import { PAGE_ROWS, readsOf } from '../postgres/reads.js';
import { checkSchema, SCHEMA } from '../postgres/sql/names.js';
import { type Call, callOn, type SupabaseClientLike } from './client.js';

export type { SupabaseClientLike, SupabaseSchemaLike } from './client.js';

/** Options of `supabaseStore`. */
export interface SupabaseStoreOptions {
  /** The schema of the tables; it has to be exposed in the project's API settings. Default `holdfast`. */
  readonly schema?: string;
}

const TRAITS: Traits = {
  clock: 'store',
  clockErrorMs: 0,
  push: false,
  queue: true,
  shared: 'network',
  durable: true,
  livenessPollMs: null,
};

/**
 * Locks in a Supabase project, for programs that have only its HTTP interface. Pass a client made with the service-role
 * key, on a server. `migrate(client, { supabase: true })` of 'holdfast/postgres' creates the schema, once.
 */
export function supabaseStore(client: SupabaseClientLike, options: SupabaseStoreOptions = {}): Store {
  checkOptionNames(options, ['schema']);
  const schema = checkSchema(options.schema ?? SCHEMA);
  const callClient = callOn(client, schema);
  let closed = false;

  const call: Call = async (name, args) => {
    if (closed) throw new UnsupportedError('This Supabase store is closed.');
    return await callClient(name, args);
  };
  const sender = new CommandSender(httpTransport(call));

  return {
    name: 'supabase',
    traits: TRAITS,
    apply: (commands) => sender.apply(commands),
    ...readsOf({
      read: (key) => call('read', { p_key: key }),
      list: (prefix, after) => call('list', { p_prefix: prefix, p_after: after, p_count: PAGE_ROWS }),
    }),
    probe: async () => guaranteesOf((await call('about', {})) as About, schema),
    async close() {
      closed = true;
    },
  };
}

/** Sends a batch of commands as one HTTP call. */
function httpTransport(call: Call): Transport {
  return {
    // Every call is an HTTP request: fewer are better.
    mostTogether: Number.POSITIVE_INFINITY,
    async send({ commands, cleanUp, hints, repeats }) {
      const answers = answersIn(
        await call('apply', { commands, clean_up: cleanUp, hints, repeats, own_transaction: true }),
      );
      if (answers !== 'isolated') return answers;
      throw new UnsupportedError(
        'Transactions there are not READ COMMITTED, and locks need that. Set it for the role that PostgREST ' +
          "connects as: ALTER ROLE authenticator SET default_transaction_isolation = 'read committed'.",
      );
    },
    explain: (error) => (isLockedOut(error) ? lockedOutError(error) : (notExecuted(error) ?? error)),
  };
}

function guaranteesOf(about: About, schema: string): Guarantees {
  return {
    server: `PostgreSQL ${about.version} through PostgREST`,
    now: about.now,
    findings: findingsOf(
      ...serverFindings(about, schema),
      about.isolation !== 'read committed' &&
        warning(
          `Transactions are ${about.isolation} by default, and locks need READ COMMITTED: set it for the role authenticator.`,
        ),
      note(
        'HTTP brings no wake-ups: waiters keep their place in the queue, and poll a few times per second. ' +
          'A direct connection, with holdfast/postgres, is faster.',
      ),
    ),
  };
}
