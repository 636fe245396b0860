/**
 * Locks in a Supabase project, through PostgREST: the same table and the same functions as the PostgreSQL store has, so
 * both exclude each other.
 *
 * Layout and atomicity are those of the PostgreSQL store: `apply` decides a batch in one transaction of the server.
 * Renewals go in a call of their own. A row that somebody else has locked for long fails the whole call, undone; its
 * commands then go again, each by itself, so that only those of that row fail.
 *
 * Clock: the database server's.
 *
 * HTTP cannot bring hints, so waiters keep their place in the line and come back by themselves.
 *
 * A reply is lost whenever a request or its answer is: what the server committed stays. That is an unknown outcome, and
 * the core asks again with the same hold. A refusal, such as a missing right, is known: nothing was done.
 */
import { type Store, type Traits, UnsupportedError } from '../../protocol/index.js';
import { Caller } from '../postgres/caller.js';
import { looks, PAGE_ROWS } from '../postgres/looks.js';
import type { Call } from './client.js';
import { httpLine } from './http-line.js';
import { guaranteesOf } from './probe.js';

const TRAITS: Traits = {
  clock: 'store',
  clockErrorMs: 0,
  push: false,
  queue: true,
  shared: 'network',
  durable: true,
  vigilMs: null,
};

export function storeOver(call: Call, schema: string): Store {
  let closed = false;

  const ask: Call = async (name, args) => {
    if (closed) throw new UnsupportedError('This Supabase store is closed.');
    return await call(name, args);
  };
  const caller = new Caller(httpLine(ask));

  return {
    name: 'supabase',
    traits: TRAITS,
    apply: (commands) => caller.apply(commands),
    ...looks({
      read: (key) => ask('read', { p_key: key }),
      list: (prefix, after) => ask('list', { p_prefix: prefix, p_after: after, p_count: PAGE_ROWS }),
    }),
    probe: async () => guaranteesOf(await ask('about', {}), schema),
    async close() {
      closed = true;
    },
  };
}
