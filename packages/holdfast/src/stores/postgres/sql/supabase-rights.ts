/**
 * Rights for Supabase's HTTP interface: only the service role may use Holdfast's tables and functions.
 *
 * Locks are for servers. A caller of `apply` can claim, and with an owner's name `release_lock`, so neither visitors
 * (`anon`) nor signed-in users (`authenticated`) get rights. Row-level security without a policy for them keeps them out
 * even if all rights are granted to them later. Safe to run again; missing roles are skipped.
 *
 * Every statement names Holdfast's own objects. The schema may belong to an application: rights on the schema itself are
 * never revoked, and granted only to a service role that has none.
 */
import { functionsOf, quoteName, quoteText, RELATIONS, TABLES } from './names.js';

const SERVICE = 'service_role';

export function supabaseSql(name: string): string {
  const schema = quoteName(name);
  const relations = RELATIONS.map((relation) => `${schema}.${relation}`).join(', ');
  const functions = functionsOf(schema).join(', ');
  return `
DO $grants$
DECLARE
  v_outsiders text;
BEGIN
  SELECT concat_ws(', ', 'PUBLIC', string_agg(quote_ident(rolname), ', ')) INTO v_outsiders
    FROM pg_roles WHERE rolname IN ('anon', 'authenticated');
  EXECUTE ${quoteText(`REVOKE ALL ON ${relations} FROM `)} || v_outsiders;
  EXECUTE ${quoteText(`REVOKE ALL ON FUNCTION ${functions} FROM `)} || v_outsiders;
${TABLES.map((table) => enableRowSecurity(`${schema}.${table}`)).join('\n')}
  -- By default a view shows what its owner may see. Servers before 15 cannot change that: there, rights alone protect it.
  IF current_setting('server_version_num')::integer >= 150000 AND NOT EXISTS (
    SELECT FROM pg_class WHERE oid = ${quoteText(`${schema}.locks`)}::regclass AND 'security_invoker=true' = ANY (reloptions)
  ) THEN
    ALTER VIEW ${schema}.locks SET (security_invoker = true);
  END IF;
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = '${SERVICE}') THEN
    IF NOT has_schema_privilege('${SERVICE}', ${quoteText(schema)}::regnamespace, 'USAGE') THEN
      GRANT USAGE ON SCHEMA ${schema} TO ${SERVICE};
    END IF;
    GRANT SELECT ON ${relations} TO ${SERVICE};
    GRANT INSERT, UPDATE, DELETE ON ${schema}.records TO ${SERVICE};
    GRANT EXECUTE ON FUNCTION ${functions} TO ${SERVICE};
${addPolicy(`${schema}.records`)}
  END IF;
END
$grants$;
-- Makes PostgREST read the schema again.
NOTIFY pgrst, 'reload schema';`;
}

/** Only if it is off, because the statement waits for all users of the table. */
function enableRowSecurity(table: string): string {
  return `  IF NOT (SELECT relrowsecurity FROM pg_class WHERE oid = ${quoteText(table)}::regclass) THEN
    ALTER TABLE ${table} ENABLE ROW LEVEL SECURITY;
  END IF;`;
}

/** The service role bypasses row-level security on Supabase, but not necessarily elsewhere. */
function addPolicy(table: string): string {
  return `    IF NOT EXISTS (
      SELECT FROM pg_policy WHERE polrelid = ${quoteText(table)}::regclass AND polname = 'service_uses_locks'
    ) THEN
      CREATE POLICY service_uses_locks ON ${table} TO ${SERVICE} USING (true) WITH CHECK (true);
    END IF;`;
}
