/** Findings about this server as it is configured, in sentences for users. */
import type { Finding, Guarantees } from '../../protocol/index.js';
import { messageOf } from '../clients/errors.js';
import { findingsOf, good, note, warning } from '../clients/findings.js';
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
      findings: [...serverFindings(about, schema), ...findingsOf(isolation(about), wakeUps(database))],
    };
  } catch (error) {
    throw explain(error, schema);
  }
}

/** Findings that do not depend on the connection. */
export function serverFindings(about: About, schema: string): readonly Finding[] {
  const { versionNumber, inRecovery, readOnly, ready, encoding } = about;
  return findingsOf(
    versionNumber < VERSION_MIN && warning('This server is older than PostgreSQL 13, which Holdfast needs.'),
    inRecovery && warning('This server is a replica: it cannot store locks. Connect to the primary.'),
    // A replica is always read-only.
    !inRecovery &&
      readOnly === 'on' &&
      warning(
        'Transactions are read-only by default (default_transaction_read_only): locks cannot be acquired.',
      ),
    !ready &&
      warning(
        `The schema ${quoteName(schema)} is not there yet: run \`holdfast migrate --store URL\` once, or migrate(client).`,
      ),
    crash(about),
    failover(about),
    good("Time is the server's clock: the clocks of its clients decide nothing."),
    encoding !== 'UTF8' && note(`The database is in ${encoding}: names with characters outside of it fail.`),
  );
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

function isolation({ isolation: level }: About): Finding | null {
  if (level === 'read committed') return null;
  return note(
    `Transactions are ${level} by default. Holdfast uses READ COMMITTED for its own, at little cost.`,
  );
}

function wakeUps({ listener }: Database): Finding {
  if (!listener) return note('No wake-ups are received: waiters poll a few times per second.');
  const error = listener.error();
  if (error !== null) return warning(`No wake-ups are received now (${messageOf(error)}): waiters poll.`);
  return good(
    'Wake-ups come by LISTEN, on a connection of its own. Behind a pooler in transaction mode none arrive.',
  );
}
