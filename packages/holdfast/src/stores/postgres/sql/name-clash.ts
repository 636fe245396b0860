/**
 * Refuses a schema in which something else has a name that Holdfast needs, before anything is changed. A function of the
 * same name with other arguments would be the worst: both are called by one name, both answer, and each keeps locks that
 * the other does not know.
 *
 * All that is looked up here is read in one snapshot. Where transactions see one moment only, a schema that another
 * process has just made looks empty, and the migration then fails at its first row and is tried again.
 */
import { FUNCTION_NAMES, functionsOf, KNOWN_COLUMNS, RELATION_NAMES } from './objects.js';
import { quoteName, quoteText } from './quoting.js';

/** Raised for a name that is taken. */
export const NAME_TAKEN = 'HF002';

/** Sets `v_own`: whether the schema has Holdfast's tables. */
export function findOwn(name: string): string {
  return `  SELECT count(*) = ${KNOWN_COLUMNS.length} INTO v_own
  FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
  WHERE n.nspname = ${quoteText(name)} AND c.relkind = 'r' AND c.relname || '.' || a.attname = ANY (${textArray(KNOWN_COLUMNS)});`;
}

/** Needs `v_own`; uses `v_functions` and `v_taken`. In a schema of ours only other functions of our names are in the way. */
export function refuseTakenNames(name: string): string {
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
