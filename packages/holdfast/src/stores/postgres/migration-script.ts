/** The migrations as one statement that a server runs as a whole or not at all. */
import type { Migration } from './migrations.js';
import { supabaseSql } from './sql/grants.js';
import { findOwn, refuseTakenNames } from './sql/name-clash.js';
import { functionsOf, RELATIONS } from './sql/objects.js';
import { quoteName, quoteText } from './sql/quoting.js';

/** Ours, told apart from all that the server raises by itself. */
export const NEWER = 'HF001';
const SERVER_MIN = 130_000;
/** Set for the transaction alone: a DO block has no other way to say what it found. */
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
 * Otherwise whoever may create functions or operators in a schema of the path could have theirs called here, with the
 * rights of whoever migrates, and by the view for ever after. Put back at the end: the transaction may be the caller's.
 */
function trustedNames(): string {
  return "  PERFORM set_config('search_path', 'pg_catalog, pg_temp', true);";
}

/** Waits for its turn, and reads which version is there. */
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

/** The schema and the table of versions. Neither is created where it exists: that would need the right to. */
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

/** Its number goes in first: whoever did not see that another had migrated meanwhile fails here, with nothing done. */
function step({ version, sql }: Migration, name: string): string {
  return `  IF v_found < ${version} THEN
    INSERT INTO ${quoteName(name)}.migrations (version) VALUES (${version}) ON CONFLICT DO NOTHING;
    EXECUTE ${dollarQuoted(sql(name), `v${version}`)};
  END IF;`;
}

/** In quotes that do not occur inside. */
function dollarQuoted(text: string, word: string): string {
  let tag = `$${word}$`;
  while (text.includes(tag)) tag = `${tag.slice(0, -1)}_$`;
  return `${tag}${text}${tag}`;
}
