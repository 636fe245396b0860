/** Findings about this server as it is configured, in sentences for users. */
import type { Finding, Guarantees } from '../../protocol/index.js';
import { type Database, jsonIn } from './clients.js';
import { explain } from './errors.js';
import { quoteName } from './sql/names.js';
import { aboutJson } from './sql/reads.js';

/** The result of `aboutJson`. */
export interface About {
  readonly now: number;
  readonly version: string;
  readonly versionNumber: number;
  readonly encoding: string;
  readonly inRecovery: boolean;
  readonly readOnly: string;
  readonly fsync: string;
  readonly fullPageWrites: string;
  readonly synchronousCommit: string;
  readonly standbys: string;
  readonly walSenders: number;
  readonly isolation: string;
  readonly ready: boolean;
}

const VERSION_MIN = 130_000;

export async function probe(database: Database, schema: string): Promise<Guarantees> {
  try {
    const rows = await database.rows(`SELECT ${aboutJson(schema)}::text AS found`, []);
    const about = jsonIn(rows, 'found') as About;
    return {
      server: `PostgreSQL ${about.version}`,
      now: about.now,
      findings: [...findingsOf(about, schema), ...isolation(about), wakeUps(database)],
    };
  } catch (error) {
    throw explain(error, schema);
  }
}

const good = (text: string): Finding => ({ level: 'good', text });
const note = (text: string): Finding => ({ level: 'note', text });
const warning = (text: string): Finding => ({ level: 'warning', text });

/** Findings that do not depend on the connection. */
export function findingsOf(about: About, schema: string): readonly Finding[] {
  const { encoding } = about;
  return [
    ...use(about, schema),
    crash(about),
    failover(about),
    good("Time is the server's clock: the clocks of its clients decide nothing."),
    ...(encoding === 'UTF8'
      ? []
      : [note(`The database is in ${encoding}: names that it has no letters for fail.`)]),
  ];
}

/** Whether locks can be kept here at all. */
function use({ versionNumber, inRecovery, readOnly, ready }: About, schema: string): readonly Finding[] {
  const findings: Finding[] = [];
  if (versionNumber < VERSION_MIN) {
    findings.push(warning('This server is older than PostgreSQL 13, which Holdfast needs.'));
  }
  if (inRecovery) {
    findings.push(warning('This server is a replica: it takes no locks. Connect to the primary.'));
  } else if (readOnly === 'on') {
    findings.push(
      warning(
        'Transactions are read-only by default (default_transaction_read_only): locks cannot be taken.',
      ),
    );
  }
  if (!ready) {
    findings.push(
      warning(
        `The schema ${quoteName(schema)} is not there yet: run \`holdfast migrate --store URL\` once, or migrate(client).`,
      ),
    );
  }
  return findings;
}

function crash({ fsync, fullPageWrites, synchronousCommit }: About): Finding {
  if (fsync === 'off' || fullPageWrites === 'off') {
    const name = fsync === 'off' ? 'fsync' : 'full_page_writes';
    return warning(
      `${name} is off: when the machine crashes, the database may be damaged, and locks with it.`,
    );
  }
  if (synchronousCommit === 'off') {
    return warning(
      'synchronous_commit is off: a crash of the server may forget the grants of its last moments, ' +
        'and another may get the same lock. Its token is still higher.',
    );
  }
  return good('A grant is on disk before it is answered: a crash of the server forgets none.');
}

function failover({ standbys, walSenders, synchronousCommit }: About): Finding {
  if (standbys !== '' && ['on', 'remote_apply', 'remote_write'].includes(synchronousCommit)) {
    return good(`Commits wait for a synchronous standby (${standbys}): a failover to it forgets no grant.`);
  }
  const followed =
    walSenders > 0 ? 'Replicas follow without being waited for' : 'Commits wait for no replica';
  return note(
    `${followed}: a failover to one may forget the grants of its last moments, ` +
      'and another may get the same lock. Its token is still higher, as long as the clocks of both servers agree.',
  );
}

function isolation({ isolation: level }: About): readonly Finding[] {
  if (level === 'read committed') return [];
  return [
    note(`Transactions are ${level} by default. Holdfast makes its own READ COMMITTED; it costs it little.`),
  ];
}

function wakeUps({ listener }: Database): Finding {
  if (!listener) return note('No wake-ups are received: waiters poll a few times per second.');
  const error = listener.error();
  if (error !== null) {
    const why = error instanceof Error ? error.message : String(error);
    return warning(`No wake-ups are received now (${why}): waiters poll.`);
  }
  return good(
    'Wake-ups come by LISTEN, on a connection of its own. Behind a pooler in transaction mode none arrive.',
  );
}
