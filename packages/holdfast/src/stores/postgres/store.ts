/**
 * Locks in a PostgreSQL table.
 *
 * Layout: `records` has one row a key: version, token, decision, the lists of `State` as JSON, and `delete_after`.
 * Commands go to the function `apply`, a port of `decide` (sql/), a batch in one statement. The schema is made by
 * `migrate`, never here.
 *
 * Atomic: a row is written only if it is still at the decision that was read, and all rows of a batch in one statement
 * and in key order, so that batches never wait for each other in a circle. Transactions are READ COMMITTED, made so
 * where the database's default is another.
 *
 * Clock: the server's `clock_timestamp()`, read after the rows, so times rise from decision to decision of a key.
 *
 * A reply is lost when the connection breaks after the commit. Then nobody here knows what happened, and the core asks
 * again with the same hold. A statement that the server refused left nothing.
 *
 * Hints are NOTIFYs, sent with the commit. They are heard over one more connection, which LISTENs; behind a pooler in
 * transaction mode nothing is heard, and waiters go by their polls. The client is the user's: it is never closed here.
 */
import {
  type Guarantees,
  type Store,
  type Traits,
  UnsupportedError,
  type Why,
} from '../../protocol/index.js';
import { Caller } from './caller.js';
import { channelOf, hintIn } from './channels.js';
import type { Database } from './clients.js';
import { looks, PAGE_ROWS } from './looks.js';
import { probe } from './probe.js';
import { quoteName } from './sql/quoting.js';
import { jsonIn, sqlLine } from './sql-line.js';
import { inWords } from './trouble.js';

export function storeOn(database: Database, schema: string): Store {
  const caller = new Caller(sqlLine(database, schema));
  const { ears } = database;
  let closed = false;

  function checkOpen(): void {
    if (closed) throw new UnsupportedError('This PostgreSQL store is closed.');
  }

  async function ask(text: string, values: readonly string[]): Promise<unknown> {
    checkOpen();
    try {
      return jsonIn(await database.rows(text, values), 'found');
    } catch (error) {
      throw inWords(error, schema);
    }
  }

  const seen = looks({
    read: (key) => ask(`SELECT ${quoteName(schema)}.read($1::text)::text AS found`, [key]),
    list: (prefix, after) => {
      const from = after === null ? 'NULL' : '$2::text';
      const text = `SELECT ${quoteName(schema)}.list($1::text, ${from}, ${PAGE_ROWS})::text AS found`;
      return ask(text, after === null ? [prefix] : [prefix, after]);
    },
  });

  return {
    name: 'postgres',
    traits: traitsOf(ears !== null),
    apply(commands) {
      if (closed) {
        const refused = new UnsupportedError('This PostgreSQL store is closed.');
        return commands.map(() => Promise.reject(refused));
      }
      ears?.mend();
      return caller.apply(commands);
    },
    ...(ears && {
      async listen(inbox: string, wake: (key: string, why: Why) => void, hears?: (hearing: boolean) => void) {
        checkOpen();
        let stopped = false;
        const hear = (payload: string): void => {
          const hint = hintIn(payload);
          if (hint && !closed && !stopped) wake(hint.key, hint.why);
        };
        const stop = await ears.listen(channelOf(inbox), { hear, hears });
        return async () => {
          stopped = true;
          await stop();
        };
      },
    }),
    ...seen,
    async probe(): Promise<Guarantees> {
      checkOpen();
      return await probe(database, schema);
    },
    async close() {
      if (closed) return;
      closed = true;
      ears?.close();
    },
  };
}

function traitsOf(push: boolean): Traits {
  return {
    clock: 'store',
    clockErrorMs: 0,
    push,
    queue: true,
    shared: 'network',
    durable: true,
    vigilMs: null,
  };
}
