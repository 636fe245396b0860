/** What this etcd, as configured, guarantees: members, majority, clocks, space. */
import type { Guarantees } from '../../protocol/index.js';
import { messageOf } from '../clients/errors.js';
import { findingsOf, good, note, warning } from '../clients/findings.js';
import type { EtcdTime } from './etcd-time.js';
import type { Gateway, Member } from './gateway.js';

/** Clocks further apart than this are worth a look, though locks are safe. */
const APART_MS = 2_000;
/** etcd refuses writes when its quota is used up: 2 GiB by default. */
const SIZE_BYTES_MAX = 1.5 * 2 ** 30;

export async function probe(
  gateway: Gateway,
  time: EtcdTime,
  now: number,
  error: unknown,
): Promise<Guarantees> {
  const [status, list, alarms] = await Promise.all([
    gateway.call('/v3/maintenance/status', {}),
    gateway.call('/v3/cluster/member/list', {}),
    gateway.call('/v3/maintenance/alarm', { action: 'GET' }),
  ]);
  const members = list.members ?? [];
  const voters = members.filter(({ isLearner }) => !isLearner);
  const silent = await silentOf(gateway);
  const size = Number(status.dbSize ?? 0);
  const raised = (alarms.alarms ?? []) as readonly { readonly alarm: string }[];
  const findings = findingsOf(
    voters.length >= 3
      ? good(
          `${voters.length} members: a lock that was granted is stored by a majority, and survives the loss of ${Math.floor((voters.length - 1) / 2)}.`,
        )
      : warning(
          `${voters.length === 1 ? 'One member' : 'Two members'}: while one is down, no lock can be had. Three survive the loss of one.`,
        ),
    good('Every grant is on disk before it is answered: a restart loses none.'),
    status.leader === undefined &&
      warning('The cluster has no leader now: no lock can be acquired or renewed.'),
    silent.length > 0 && warning(`These endpoints do not answer: ${silent.join(', ')}.`),
    gateway.proxied.size > 0 &&
      warning(
        `A proxy answers at ${[...gateway.proxied].join(', ')}. Its Date header has to be the member's own, or two processes may hold a lock: use a TCP proxy, or have the header passed on.`,
      ),
    gateway.endpoints.length < Math.min(voters.length, 2) &&
      note('Only one endpoint is named: its loss stops this process. Name all members.'),
    ...raised.map(({ alarm }) =>
      warning(
        alarm === 'NOSPACE'
          ? 'The alarm NOSPACE is raised: etcd refuses writes. Compact and defragment it, then disarm the alarm.'
          : `The alarm ${alarm} is raised.`,
      ),
    ),
    size > SIZE_BYTES_MAX &&
      warning(
        `The database has ${Math.round(size / 2 ** 20)} MiB: compact its history (--auto-compaction-retention).`,
      ),
    note(
      'Renewals add to the history of etcd until it is compacted: start it with --auto-compaction-retention, or compact it regularly.',
    ),
    ...clocksOf(time, members),
    Boolean(error) && warning(`The last background call failed: ${messageOf(error)}`),
  );
  return { server: `etcd ${String(status.version)}`, now, findings };
}

async function silentOf(gateway: Gateway): Promise<readonly string[]> {
  const asked = gateway.endpoints.map(async (url) => await gateway.ask(url, '/v3/maintenance/status', {}));
  const answers = await Promise.allSettled(asked);
  return gateway.endpoints.filter((_, index) => answers[index]?.status === 'rejected');
}

function* clocksOf({ clocks }: EtcdTime, members: readonly Member[]) {
  for (const { ID, name = ID } of members) {
    const offset = clocks.offsets.get(ID);
    if (!offset) yield note(`The clock of member ${name} was not compared yet: it is not used.`);
    else if (offset.low > APART_MS || offset.high < -APART_MS) {
      const seconds = Math.round((offset.low + offset.high) / 2_000);
      yield warning(
        `The clock of member ${name} differs by ${seconds} s from the one that counts. Locks are safe; set the clock right.`,
      );
    }
  }
}
