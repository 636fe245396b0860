/**
 * Locks in a PostgreSQL table.
 *
 * Layout: `records` has one row per key: version, token, decision, the lists of `State` as JSON, and `delete_after`.
 * Commands go to the function `apply`, a port of `decide` (sql/), one batch per statement. `migrate` creates the schema;
 * the store never does.
 *
 * Atomic: a row is written only if it is still at the decision that was read, and all rows of a batch in one statement and
 * in key order, so that batches never deadlock. Transactions are READ COMMITTED, even if the database's default is another
 * level.
 *
 * Clock: the server's `clock_timestamp()`, read after the rows, so times rise from decision to decision of a key.
 *
 * A lost reply: the connection broke after the commit. The outcome is unknown, and the engine repeats the command with the
 * same hold. A statement that the server refused changed nothing.
 *
 * Wake-ups are NOTIFYs, sent with the commit, and received over one more connection, which LISTENs; behind a pooler in
 * transaction mode none arrive, and waiters poll. The client belongs to the user: the store never closes it.
 */
import { type Command, type Guarantees, type Store, UnsupportedError } from '../../protocol/index.js';
import { deliverWake } from '../clients/wake-up.js';
import { type Database, jsonIn, textIn } from './clients.js';
import { type Answer, answersIn, type Call, CommandSender, type Transport } from './command-sender.js';
import { explain, isConnectionError } from './errors.js';
import { probe } from './probe.js';
import { PAGE_ROWS, readsOf } from './reads.js';
import { quoteName, quoteText } from './sql/names.js';
import { channelOf } from './wake-listener.js';

export function storeOn(database: Database, schema: string): Store {
  const sender = new CommandSender(sqlTransport(database, schema));
  const { listener } = database;
  let closed = false;

  function checkOpen(): void {
    if (closed) throw new UnsupportedError('This PostgreSQL store is closed.');
  }

  async function query(text: string, values: readonly string[]): Promise<unknown> {
    checkOpen();
    try {
      return jsonIn(await database.rows(text, values), 'found');
    } catch (error) {
      throw explain(error, schema);
    }
  }

  const reads = readsOf({
    read: (key) => query(`SELECT ${quoteName(schema)}.read($1::text)::text AS found`, [key]),
    list: (prefix, after) => {
      const from = after === null ? 'NULL' : '$2::text';
      const text = `SELECT ${quoteName(schema)}.list($1::text, ${from}, ${PAGE_ROWS})::text AS found`;
      return query(text, after === null ? [prefix] : [prefix, after]);
    },
  });

  return {
    name: 'postgres',
    traits: {
      clock: 'store',
      clockErrorMs: 0,
      push: listener !== null,
      queue: true,
      shared: 'network',
      durable: true,
      livenessPollMs: null,
    },
    apply(commands) {
      if (closed) {
        const refused = new UnsupportedError('This PostgreSQL store is closed.');
        return commands.map(() => Promise.reject(refused));
      }
      return sender.apply(commands);
    },
    ...(listener && {
      async listen(inbox, wake, onListening) {
        checkOpen();
        let stopped = false;
        const receive = (payload: string): void => {
          if (!closed && !stopped) deliverWake(payload, ' ', wake);
        };
        const stop = await listener.listen(channelOf(inbox), { receive, onListening });
        return async () => {
          stopped = true;
          await stop();
        };
      },
    }),
    ...reads,
    async probe(): Promise<Guarantees> {
      checkOpen();
      return await probe(database, schema);
    },
    async close() {
      if (closed) return;
      closed = true;
      listener?.close();
    },
  };
}

/** Sends a batch of commands as one statement. */
function sqlTransport(database: Database, schema: string): Transport {
  /** Set once a transaction did not begin as READ COMMITTED. */
  let mustSetIsolation = false;

  const apply = `SELECT ${quoteName(schema)}.apply`;

  function query({ commands, cleanUp, hints, repeats, urgent }: Call): Promise<readonly unknown[]> {
    const [command] = commands;
    const single = commands.length === 1 && command ? parametersOf(command) : null;
    if (single) {
      const { given, values } = single;
      const more = `clean_up => $${values.length + 1}, hints => ${hints}, own_transaction => true`;
      values.push(String(cleanUp));
      return database.rows(`${apply}_one(${given}, ${more}) AS answers`, values, urgent);
    }
    const text = `${apply}($1::text::jsonb, $2::integer, ${hints}, ${repeats}, true) AS answers`;
    return database.rows(text, [JSON.stringify(commands), String(cleanUp)], urgent);
  }

  async function send(call: Call): Promise<readonly Answer[]> {
    if (!mustSetIsolation) {
      const answers = answersIn(textIn(await query(call), 'answers'));
      if (answers !== 'isolated') return answers;
      mustSetIsolation = true;
    }
    const json = quoteText(JSON.stringify(call.commands));
    const literal = `${apply}(${json}::jsonb, ${call.cleanUp}, ${call.hints}, ${call.repeats}, true) AS answers`;
    const text = `SET TRANSACTION ISOLATION LEVEL READ COMMITTED; ${literal}`;
    const answers = answersIn(textIn(await database.script(text, call.urgent), 'answers'));
    if (answers !== 'isolated') return answers;
    throw new UnsupportedError('These transactions cannot be made READ COMMITTED, and locks need that.');
  }

  return {
    mostTogether: database.mostTogether,
    send,
    explain: (error, key) => explain(error, schema, key),
    failed(error) {
      if (isConnectionError(error)) database.listener?.suspect();
    },
  };
}

/**
 * A command as parameters of `apply_one`; null for a command that `apply_one` does not take. Booleans are in the text of
 * the statement: PGlite refuses strings for them.
 */
function parametersOf(
  command: Command,
): { readonly given: string; readonly values: (string | null)[] } | null {
  if (command.kind === 'evict') return null;
  const { key, hold } = command;
  const values: (string | null)[] = [key, hold.process, String(hold.number)];
  switch (command.kind) {
    case 'claim': {
      const { owner, permits, capacity, ttlMs, queue, inbox, metadata } = command;
      values.push(owner, String(permits), String(capacity), String(ttlMs), inbox, metadata);
      return { given: `'claim', $1, $2, $3, $4, $5, $6, $7, ${queue}, $8, $9`, values };
    }
    case 'renew':
      if (command.added) return null;
      values.push(String(command.ttlMs));
      return { given: `'renew', $1, $2, $3, "ttlMs" => $4, block => ${command.block}`, values };
    case 'release':
      values.push(String(command.minHoldMs));
      return { given: `'release', $1, $2, $3, "minHoldMs" => $4`, values };
  }
}
