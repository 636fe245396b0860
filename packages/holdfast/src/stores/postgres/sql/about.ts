/** What `probe` asks of a server; as a function too, for those who reach it through nothing but functions. */
import { quoteName, quoteText } from './quoting.js';
import { NOW_MS } from './time.js';

const setting = (name: string): string => `current_setting('${name}', true)`;

/** A JSON object, in the shape of `About` in probe.ts. Answered also where nothing was migrated yet. */
export function aboutJson(name: string): string {
  return `pg_catalog.json_build_object(
    'now', ${NOW_MS}, 'version', ${setting('server_version')}, 'versionNumber', ${setting('server_version_num')}::integer,
    'encoding', ${setting('server_encoding')}, 'inRecovery', pg_is_in_recovery(),
    'readOnly', ${setting('default_transaction_read_only')}, 'fsync', ${setting('fsync')},
    'fullPageWrites', ${setting('full_page_writes')}, 'synchronousCommit', ${setting('synchronous_commit')},
    'standbys', ${setting('synchronous_standby_names')},
    'walSenders', (SELECT count(*) FROM pg_stat_replication WHERE application_name <> 'pg_basebackup'),
    'isolation', ${setting('default_transaction_isolation')},
    'ready', to_regclass(${quoteText(`${quoteName(name)}.records`)}) IS NOT NULL)`;
}

export function aboutSql(name: string): string {
  return `
CREATE FUNCTION ${quoteName(name)}.about() RETURNS json
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $about$
  SELECT ${aboutJson(name)}
$about$;`;
}
