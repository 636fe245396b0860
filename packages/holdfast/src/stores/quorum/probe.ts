/** What the servers of a quorum, as configured, guarantee: each by itself, and all together. */
import type { Finding, Guarantees } from '../../protocol/index.js';
import { messageOf } from '../clients/errors.js';
import { findingsOf, good, note, warning } from '../clients/findings.js';
import { groupedBy } from '../clients/grouped.js';
import { factsOf, memoryFinding, nameOf } from '../redis/probe.js';
import type { Quorum } from './quorum.js';
import type { RedisMember } from './redis-member.js';

/** Clocks further apart than this make locks of dead processes last longer. */
const APART_MS_MAX = 1_000;

export async function probe(
  quorum: Quorum,
  members: readonly RedisMember[],
  listenError: unknown,
): Promise<Guarantees> {
  await quorum.time.sample();
  const found = await Promise.all(
    members.map((member) => quorum.inTime(memberFindings(member)).catch(errorOf(member))),
  );
  const times = quorum.time.now().members.flatMap((reading) => reading ?? []);
  const apartMs =
    Math.max(...times.map(({ earliest }) => earliest)) - Math.min(...times.map(({ latest }) => latest));
  const { earliest, latest } = quorum.time.reading() ?? { earliest: 0, latest: 0 };
  const lost = members.length - quorum.majority;
  return {
    server: `a quorum of ${members.length}: ${[...new Set(found.map(({ server }) => server))].join(', ')}`,
    now: Math.round((earliest + latest) / 2),
    findings: [
      ofOneServer(found) ??
        good(
          `Every lock is on a majority before it is answered: ${lost} of ${members.length} servers may be lost.`,
        ),
      good("A majority of the servers' clocks decides: no client's clock matters, and no single server's."),
      ...found.flatMap(({ findings }) => findings),
      ...findingsOf(
        apartMs > APART_MS_MAX &&
          warning(
            `The clocks of the servers are ${Math.round(apartMs / 1_000)} s apart. Locks stay correct, but while servers are ` +
              'away, locks of dead processes may last that much longer. Remedy: slew the clocks until they agree. Never set ' +
              'a clock forward while its server votes: the server would forget records.',
          ),
        listenError !== undefined &&
          note(
            `The last error of a wake-up: ${messageOf(listenError)}. Waiters that are not woken poll, which is slower.`,
          ),
      ),
    ],
  };
}

/** Databases of one server, or names of it, are no independent servers. */
function ofOneServer(found: readonly Found[]): Finding | null {
  const byRun = groupedBy([...found.entries()], ([, { run }]) => run ?? '');
  const together = [...byRun].filter(([run, some]) => run !== '' && some.length > 1).map(([, some]) => some);
  if (together.length === 0) return null;
  const names = together.map(
    (some) => `${some.map(([index]) => index + 1).join(' and ')} are one Redis server`,
  );
  return warning(
    `Servers ${names.join(', ')}: when that one is lost, or restarted, all of them are. Remedy: independent servers.`,
  );
}

interface Found {
  readonly server: string;
  /** The run id of the server; undefined where it does not answer. */
  readonly run?: string | undefined;
  readonly findings: readonly Finding[];
}

async function memberFindings(member: RedisMember): Promise<Found> {
  const [{ reason }, { info, config }] = await Promise.all([member.greet(), factsOf(await member.server())]);
  const named = ({ level, text }: Finding): Finding => ({ level, text: `${member.name}: ${text}` });
  const isMaster = info.get('role') === 'master';
  const memory = memoryFinding(info);
  const findings = findingsOf(
    reason !== '' && warning(`It does not vote: ${reason}.`),
    !isMaster && warning('It is a replica: pass a client of its master.'),
    isMaster &&
      Number(info.get('connected_slaves') ?? 0) > 0 &&
      warning(
        'It has replicas: never fail over to one, as it would have forgotten promises. Enrol it first.',
      ),
    diskFinding(info, config),
    memory.level !== 'good' && memory,
  );
  return { server: nameOf(info, 1), run: info.get('run_id'), findings: findings.map(named) };
}

/** A server that forgets a promise breaks exclusion, so a restarted one has to be enrolled again, whatever is on its disk. */
function diskFinding(info: ReadonlyMap<string, string>, config: ReadonlyMap<string, string> | null): Finding {
  const appends = info.get('aof_enabled') === '1';
  const syncs = config?.get('appendfsync');
  if (appends && syncs === 'always') return good('Every change is on disk before it is answered.');
  const loss = appends
    ? `Changes go to disk ${syncs === 'everysec' ? 'once a second' : 'now and then'} (appendfsync ${syncs ?? 'unknown'}): a crash loses the last ones`
    : 'Changes are not appended to a file (appendonly no): a restart loses the last ones, or all';
  return warning(
    `${loss}. If a majority crashes at once, locks are forgotten. Remedy: appendonly yes, appendfsync always.`,
  );
}

function errorOf({ name }: RedisMember): (error: unknown) => Found {
  return (error) => ({
    server: 'one that does not answer',
    findings: [warning(`${name}: it cannot be used (${messageOf(error)}).`)],
  });
}
