/**
 * Names in the generated SQL: quoting, and the names of every object that the migrations create. A schema may hold other
 * objects, too (an application's `public`): rights and name checks concern these names alone. A test compares the list
 * with the catalog.
 */
import { InvalidArgumentError } from '../../../protocol/index.js';

export const SCHEMA = 'holdfast';

/** Refuses names that PostgreSQL would truncate, or that could end a quoted function body. */
export function checkSchema(schema: unknown, what = 'schema'): string {
  const isName = typeof schema === 'string' && /^[^\p{Cc}$]+$/u.test(schema) && schema.isWellFormed();
  if (isName && Buffer.byteLength(schema) <= 63) return schema;
  throw new InvalidArgumentError(
    `The ${what} ${JSON.stringify(schema) ?? String(schema)} is invalid: use 1 to 63 bytes, no control characters, no $.`,
  );
}

export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** A quoted text, which is correct with and without backslashes as escapes. */
export function quoteText(text: string): string {
  const quoted = `'${text.replaceAll("'", "''")}'`;
  return text.includes('\\') ? `E${quoted.replaceAll('\\', '\\\\')}` : quoted;
}

/** The tables and the view. */
export const RELATIONS = ['migrations', 'records', 'locks'] as const;
export const TABLES = ['migrations', 'records'] as const;
/** Names that relations and types share; tables and views are types as well. */
export const RELATION_NAMES = [...RELATIONS, 'records_delete_after', '_draft'] as const;

/** The columns that identify our tables. */
export const KNOWN_COLUMNS = [
  'migrations.version',
  'migrations.applied_at',
  'records.key',
  'records.token',
  'records.decision',
  'records.previous',
  'records.hold_token',
  'records.waiters',
] as const;

/** `@` stands for the quoted schema. */
const SIGNATURES = [
  '_busy(@._draft, jsonb, integer, integer, bigint)',
  '_call_next(@._draft, bigint)',
  '_claim(@._draft, jsonb, bigint)',
  '_clean_up(integer)',
  '_decide(@.records, jsonb, bigint)',
  '_decide_all(text, @.records, jsonb[], bigint)',
  '_delete_after(@._draft, bigint)',
  '_elements(jsonb)',
  '_enqueue(@._draft, jsonb, integer, bigint)',
  '_evict(@._draft, jsonb, bigint)',
  '_free_in_ms(@._draft, integer, bigint)',
  '_grant(@._draft, jsonb, integer, bigint)',
  '_grant_of(jsonb)',
  '_has_room(@._draft, integer, jsonb, bigint)',
  '_holder_views(jsonb[])',
  '_holders(@.records)',
  '_live(jsonb[], bigint)',
  '_mark_ended(@._draft, jsonb, bigint)',
  '_marks(@.records)',
  '_metadata_of(text)',
  '_notify(text, text, text)',
  '_plain_apply(jsonb, integer)',
  '_plain_hold(text, text, boolean)',
  '_plain_key(text, text)',
  '_plain_metadata(jsonb)',
  '_plain_owner(text)',
  '_plain_text(text, text, integer)',
  '_plain_ttl_ms(integer, text)',
  '_release(@._draft, jsonb, bigint)',
  '_renew(@._draft, jsonb, bigint)',
  '_reserve(@._draft, integer, bigint)',
  '_row(text, @._draft, bigint)',
  '_snapshot(@.records, bigint)',
  '_sweep(@._draft, bigint)',
  '_taken(@._draft)',
  '_wake_ups(@._draft, bigint)',
  'about()',
  'acquire_lock(text, text, integer, jsonb, text)',
  'apply(jsonb, integer, boolean, boolean, boolean)',
  'apply_one(text, text, text, bigint, text, bigint, bigint, bigint, boolean, text, text, boolean, bigint, integer, boolean, boolean)',
  'extend_lock(text, text, integer, text)',
  'list(text, text, integer)',
  'lock_token(text, text, text)',
  'read(text)',
  'release_lock(text, text, text)',
] as const;

export const FUNCTION_NAMES: readonly string[] = SIGNATURES.map((signature) => signature.replace(/\(.*/, ''));

/** Every function with its argument types, as `GRANT` and `to_regprocedure` take it. */
export function functionsOf(quotedSchema: string): readonly string[] {
  return SIGNATURES.map((signature) => `@.${signature}`.replaceAll('@', () => quotedSchema));
}
