/** What a project's database, as it is set, really promises. */
import type { Finding, Guarantees } from '../../protocol/index.js';
import { type About, findingsOf } from '../postgres/probe.js';

export function guaranteesOf(answer: unknown, schema: string): Guarantees {
  const about = answer as About;
  return {
    server: `PostgreSQL ${about.version} through PostgREST`,
    now: about.now,
    findings: [...findingsOf(about, schema), ...isolation(about), push()],
  };
}

function isolation({ isolation: level }: About): readonly Finding[] {
  if (level === 'read committed') return [];
  return [
    {
      level: 'warning',
      text: `Transactions are ${level} by default, and locks need READ COMMITTED: set it for the role authenticator.`,
    },
  ];
}

function push(): Finding {
  return {
    level: 'note',
    text:
      'HTTP brings no hints: waiters keep their place in line, and ask a few times in a second. ' +
      'A direct connection, with holdfast/postgres, is faster.',
  };
}
