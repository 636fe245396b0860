/** The Supabase store: the PostgreSQL store's functions over HTTP. See store.ts for how it works. */
import type { Store } from '../../protocol/index.js';
import { checkOptionNames } from '../../protocol/option-names.js';
import { checkSchema, SCHEMA } from '../postgres/sql/quoting.js';
import { callerOf, type SupabaseClientLike } from './client.js';
import { storeOver } from './store.js';

export type { SupabaseClientLike, SupabaseSchemaLike } from './client.js';

export interface SupabaseStoreOptions {
  /** Where the tables are; it has to be exposed in the project's API settings. `holdfast` unless told. */
  readonly schema?: string;
}

/**
 * Locks in a Supabase project, for those who have only its HTTP interface. Give it a client made with the service-role
 * key, on a server. `migrate(client, { supabase: true })` of 'holdfast/postgres' makes what it needs, once.
 */
export function supabaseStore(client: SupabaseClientLike, options: SupabaseStoreOptions = {}): Store {
  checkOptionNames(options, ['schema']);
  const schema = checkSchema(options.schema ?? SCHEMA);
  return storeOver(callerOf(client, schema), schema);
}
