/**
 * Who may use the schema where it is reached through Supabase's HTTP interface: the service role, and nobody else.
 *
 * Locks are for servers. Anybody who may call `apply` can claim, and with an owner's name `release_lock` too, so neither
 * visitors (`anon`) nor signed-in users (`authenticated`) get near it: no rights, and row-level security with no
 * policy for them behind that, should somebody grant them all later. Safe to run again; roles that are not there are left out.
 */
import { quoteName, quoteText } from './quoting.js';

const OUTSIDERS = ['anon', 'authenticated'];
const SERVICE = 'service_role';

export function supabaseSql(name: string): string {
  const schema = quoteName(name);
  return `
DO $grants$
DECLARE
  v_table regclass;
BEGIN
${revoke(schema, 'PUBLIC')}
${OUTSIDERS.map((role) => ifThere(role, revoke(schema, role))).join('\n')}
  FOR v_table IN
    SELECT oid FROM pg_class
    WHERE relnamespace = ${quoteText(schema)}::regnamespace AND relkind = 'r' AND NOT relrowsecurity
  LOOP
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', v_table);
  END LOOP;
  -- Otherwise a view shows what its owner may see. Older servers cannot do that: there, rights alone protect it.
  IF current_setting('server_version_num')::integer >= 150000 AND NOT EXISTS (
    SELECT FROM pg_class WHERE oid = ${quoteText(`${schema}.locks`)}::regclass AND 'security_invoker=true' = ANY (reloptions)
  ) THEN
    ALTER VIEW ${schema}.locks SET (security_invoker = true);
  END IF;
${ifThere(SERVICE, grant(schema))}
END
$grants$;
-- PostgREST reads the schema anew.
NOTIFY pgrst, 'reload schema';`;
}

function ifThere(role: string, statements: string): string {
  return `  IF EXISTS (SELECT FROM pg_roles WHERE rolname = ${quoteText(role)}) THEN
${statements}
  END IF;`;
}

function revoke(schema: string, role: string): string {
  return `    REVOKE ALL ON SCHEMA ${schema} FROM ${role};
    REVOKE ALL ON ALL TABLES IN SCHEMA ${schema} FROM ${role};
    REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ${schema} FROM ${role};`;
}

/** With a policy of its own: the service role passes row-level security on Supabase, but need not elsewhere. */
function grant(schema: string): string {
  const table = `${schema}.records`;
  return `    GRANT USAGE ON SCHEMA ${schema} TO ${SERVICE};
    GRANT SELECT ON ALL TABLES IN SCHEMA ${schema} TO ${SERVICE};
    GRANT INSERT, UPDATE, DELETE ON ${table} TO ${SERVICE};
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ${schema} TO ${SERVICE};
    IF NOT EXISTS (
      SELECT FROM pg_policy WHERE polrelid = ${quoteText(table)}::regclass AND polname = 'service_uses_locks'
    ) THEN
      CREATE POLICY service_uses_locks ON ${table} TO ${SERVICE} USING (true) WITH CHECK (true);
    END IF;`;
}
