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
      findings: [...findingsOf(about, schema), ...isolation(about), hearing(database)],
    };
  } catch (error) {
    throw explain(error, schema);
  }
}

/** Findings that do not depend on the connection. */
export function findingsOf(about: About, schema: string): readonly Finding[] {
  return [...use(about, schema), ...crash(about), ...failover(about), ...rest(about)];
}

/** Whether locks can be kept here at all. */
function use(about: About, schema: string): readonly Finding[] {
  const findings: Finding[] = [];
  if (about.versionNumber < VERSION_MIN) {
    findings.push({
      level: 'warning',
      text: 'This server is older than PostgreSQL 13, which Holdfast needs.',
    });
  }
  if (about.inRecovery) {
    findings.push({
      level: 'warning',
      text: 'This server is a replica: it takes no locks. Connect to the primary.',
    });
  } else if (about.readOnly === 'on') {
    findings.push({
      level: 'warning',
      text: 'Transactions are read-only by default (default_transaction_read_only): locks cannot be taken.',
    });
  }
  if (!about.ready) {
    findings.push({
      level: 'warning',
      text: `The schema ${quoteName(schema)} is not there yet: run \`holdfast migrate --store URL\` once, or migrate(client).`,
    });
  }
  return findings;
}

function crash({ fsync, fullPageWrites, synchronousCommit }: About): readonly Finding[] {
  if (fsync === 'off' || fullPageWrites === 'off') {
    const name = fsync === 'off' ? 'fsync' : 'full_page_writes';
    return [
      {
        level: 'warning',
        text: `${name} is off: when the machine crashes, the database may be damaged, and locks with it.`,
      },
    ];
  }
  if (synchronousCommit === 'off') {
    return [
      {
        level: 'warning',
        text:
          'synchronous_commit is off: a crash of the server may forget the grants of its last moments, ' +
          'and another may get the same lock. Its token is still higher.',
      },
    ];
  }
  return [
    { level: 'good', text: 'A grant is on disk before it is answered: a crash of the server forgets none.' },
  ];
}

function failover({ standbys, walSenders, synchronousCommit }: About): readonly Finding[] {
  const waits = ['on', 'remote_apply', 'remote_write'].includes(synchronousCommit);
  if (standbys !== '' && waits) {
    return [
      {
        level: 'good',
        text: `Commits wait for a synchronous standby (${standbys}): a failover to it forgets no grant.`,
      },
    ];
  }
  const followed =
    walSenders > 0 ? 'Replicas follow without being waited for' : 'Commits wait for no replica';
  return [
    {
      level: 'note',
      text:
        `${followed}: a failover to one may forget the grants of its last moments, ` +
        'and another may get the same lock. Its token is still higher, as long as the clocks of both servers agree.',
    },
  ];
}

function rest({ encoding }: About): readonly Finding[] {
  const findings: Finding[] = [
    { level: 'good', text: "Time is the server's clock: the clocks of its clients decide nothing." },
  ];
  if (encoding !== 'UTF8') {
    findings.push({
      level: 'note',
      text: `The database is in ${encoding}: names that it has no letters for fail.`,
    });
  }
  return findings;
}

function isolation({ isolation: level }: About): readonly Finding[] {
  if (level === 'read committed') return [];
  return [
    {
      level: 'note',
      text: `Transactions are ${level} by default. Holdfast makes its own READ COMMITTED; it costs it little.`,
    },
  ];
}

function hearing({ listener }: Database): Finding {
  if (!listener) {
    return {
      level: 'note',
      text: 'No wake-ups are received: waiters poll a few times per second.',
    };
  }
  const trouble = listener.error();
  if (trouble !== null) {
    const why = trouble instanceof Error ? trouble.message : String(trouble);
    return { level: 'warning', text: `No wake-ups are received now (${why}): waiters poll.` };
  }
  return {
    level: 'good',
    text: 'Wake-ups come by LISTEN, on a connection of its own. Behind a pooler in transaction mode none arrive.',
  };
}
