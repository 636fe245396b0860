/** The migrations as one statement, which the server runs completely or not at all. */
import type { Migration } from './migrations.js';
import {
  FUNCTION_NAMES,
  functionsOf,
  KNOWN_COLUMNS,
  quoteName,
  quoteText,
  RELATION_NAMES,
  RELATIONS,
} from './sql/names.js';
import { supabaseSql } from './sql/supabase-rights.js';

/** SQLSTATEs of our own. */
export const NEWER = 'HF001';
export const NAME_TAKEN = 'HF002';
const SERVER_MIN = 130_000;
/** A setting of the transaction: a DO block has no other way to return a value. */
export const FOUND_SETTING = 'holdfast.migrated_from';

export function latestOf(migrations: readonly Migration[]): number {
  return Math.max(...migrations.map(({ version }) => version));
}

export function scriptOf(migrations: readonly Migration[], name: string, supabase: boolean): string {
  const schema = quoteName(name);
  const latest = latestOf(migrations);
  const body = [
    trustedNames(),
    opening(name),
    refusal(name, latest),
    refuseTakenNames(name),
    room(name),
    ...migrations.map((migration) => step(migration, name)),
    ...(supabase ? [`  EXECUTE ${dollarQuoted(supabaseSql(name), 'rights')};`] : []),
    "  PERFORM set_config('search_path', v_path, true);",
  ];
  return `-- Holdfast: its tables and functions in the schema ${schema}, version ${latest}. One statement, and safe to run again.
-- Whoever runs it needs CREATE on the database, or owns the schema. Whoever uses the locks afterwards needs
--   GRANT USAGE ON SCHEMA ${schema} TO somebody;
--   GRANT SELECT ON ${RELATIONS.map((relation) => `${schema}.${relation}`).join(', ')} TO somebody;
--   GRANT INSERT, UPDATE, DELETE ON ${schema}.records TO somebody;
--   GRANT EXECUTE ON FUNCTION ${functionsOf(schema).join(', ')} TO somebody;
${supabase ? `--   CREATE POLICY somebody_uses_locks ON ${schema}.records TO somebody USING (true) WITH CHECK (true);\n` : ''}DO ${dollarQuoted(`\n${DECLARATIONS}\nBEGIN\n${body.join('\n')}\nEND\n`, 'holdfast')};`;
}

const DECLARATIONS = `DECLARE
  v_own boolean;
  v_found integer := 0;
  v_functions oid[];
  v_taken text;
  v_path text := current_setting('search_path');`;

/**
 * A fixed search path. With the session's, functions or operators that others created in its schemas would run with the
 * rights of the migrating user, and later in the view. Restored at the end: the transaction may be the caller's.
 */
function trustedNames(): string {
  return "  PERFORM set_config('search_path', 'pg_catalog, pg_temp', true);";
}

/** Waits for concurrent migrations, and reads the version. */
function opening(name: string): string {
  return `  IF current_setting('server_version_num')::integer < ${SERVER_MIN} THEN
    RAISE EXCEPTION 'Holdfast needs PostgreSQL 13 or later, and this is %.', current_setting('server_version')
      USING ERRCODE = 'feature_not_supported';
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended(${quoteText(`holdfast migrate ${name}`)}, 0));
${findOwn(name)}
  IF v_own THEN
    SELECT coalesce(max(version), 0) INTO v_found FROM ${quoteName(name)}.migrations;
  END IF;
  PERFORM set_config('${FOUND_SETTING}', v_found::text, true);`;
}

/** Creates the schema and the table of versions if they do not exist; otherwise no right to create is needed. */
function room(name: string): string {
  const schema = quoteName(name);
  return `  IF to_regnamespace(${quoteText(schema)}) IS NULL THEN
    IF NOT has_database_privilege(current_database(), 'CREATE') THEN
      RAISE EXCEPTION '% may not create a schema in this database.', current_user
        USING ERRCODE = 'insufficient_privilege',
        HINT = format('GRANT CREATE ON DATABASE %I TO %I;', current_database(), current_user);
    END IF;
    CREATE SCHEMA ${schema};
  END IF;
  IF to_regclass(${quoteText(`${schema}.migrations`)}) IS NULL THEN
    CREATE TABLE ${schema}.migrations (
      version integer PRIMARY KEY,
      applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
    );
  END IF;`;
}

function refusal(name: string, latest: number): string {
  return `  IF v_found > ${latest} THEN
    RAISE EXCEPTION 'The schema % has version %, and this Holdfast knows versions up to ${latest}.',
      ${quoteText(quoteName(name))}, v_found
      USING ERRCODE = '${NEWER}', HINT = 'A newer Holdfast migrated it: upgrade this one. Nothing was changed.';
  END IF;`;
}

/** Inserts the version first: a migration that did not see a concurrent one fails here, with nothing done. */
function step({ version, sql }: Migration, name: string): string {
  return `  IF v_found < ${version} THEN
    INSERT INTO ${quoteName(name)}.migrations (version) VALUES (${version}) ON CONFLICT DO NOTHING;
    EXECUTE ${dollarQuoted(sql(name), `v${version}`)};
  END IF;`;
}

/** Quotes with a tag that the text does not contain. */
function dollarQuoted(text: string, word: string): string {
  let tag = `$${word}$`;
  while (text.includes(tag)) tag = `${tag.slice(0, -1)}_$`;
  return `${tag}${text}${tag}`;
}

/** Sets `v_own`: whether the schema has Holdfast's tables. */
function findOwn(name: string): string {
  return `  SELECT count(*) = ${KNOWN_COLUMNS.length} INTO v_own
  FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
  WHERE n.nspname = ${quoteText(name)} AND c.relkind = 'r' AND c.relname || '.' || a.attname = ANY (${textArray(KNOWN_COLUMNS)});`;
}

/**
 * Refuses names that other objects have. Needs `v_own`. In our own schema only a function with other arguments can be in
 * the way: callers could reach either of the two, and each would keep locks that the other does not know.
 */
function refuseTakenNames(name: string): string {
  const schema = quoteName(name);
  return `  IF v_own THEN
    v_functions := ARRAY(SELECT to_regprocedure(f)::oid FROM unnest(${textArray(functionsOf(schema))}) AS f);
  END IF;
  SELECT string_agg(what, ', ' ORDER BY what COLLATE "C") INTO v_taken FROM (
    SELECT CASE c.relkind WHEN 'r' THEN 'table ' WHEN 'p' THEN 'table ' WHEN 'f' THEN 'foreign table ' WHEN 'v' THEN 'view '
      WHEN 'm' THEN 'materialized view ' WHEN 'S' THEN 'sequence ' WHEN 'c' THEN 'type ' ELSE 'index ' END || quote_ident(c.relname)
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE NOT v_own AND n.nspname = ${quoteText(name)} AND c.relname = ANY (${textArray(RELATION_NAMES)})
    UNION ALL
    -- Not the array type that comes with every table and type: PostgreSQL renames that one by itself.
    SELECT 'type ' || quote_ident(t.typname)
    FROM pg_type AS t JOIN pg_namespace AS n ON n.oid = t.typnamespace
    WHERE NOT v_own AND n.nspname = ${quoteText(name)} AND t.typname = ANY (${textArray(RELATION_NAMES)}) AND t.typrelid = 0
      AND NOT EXISTS (SELECT FROM pg_type AS element WHERE element.typarray = t.oid)
    UNION ALL
    SELECT 'function ' || quote_ident(p.proname) || '(' || oidvectortypes(p.proargtypes) || ')'
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
    WHERE n.nspname = ${quoteText(name)} AND p.proname = ANY (${textArray(FUNCTION_NAMES)}) AND p.oid = ANY (v_functions) IS NOT TRUE
  ) AS taken (what);
  IF v_taken IS NOT NULL THEN
    RAISE EXCEPTION 'The schema % has something else under names that Holdfast needs: %.', ${quoteText(schema)}, v_taken
      USING ERRCODE = '${NAME_TAKEN}',
      HINT = CASE WHEN v_own
        THEN 'Callers could reach either function, and each has locks that the other does not know. '
          'Let all callers use one of the two, then drop or rename the other.'
        ELSE 'Choose a schema that Holdfast has to itself (option schema, by default "holdfast"), '
          'or drop or rename these first.' END || ' Nothing was changed.';
  END IF;`;
}

function textArray(texts: readonly string[]): string {
  return `ARRAY[${texts.map(quoteText).join(', ')}]`;
}
