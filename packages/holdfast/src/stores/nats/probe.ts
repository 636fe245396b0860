/** What a NATS server and the bucket, as configured, guarantee: what a crash or a power failure costs. */
import type { Finding, Guarantees } from '../../protocol/index.js';
import { messageOf } from '../clients/errors.js';
import { findingsOf, good, note, warning } from '../clients/findings.js';
import type { Reading } from '../compare-and-swap/register.js';
import type { Bucket } from './bucket.js';
import type { ApiResponse, StreamConfig } from './connection.js';
import { comparesTooEarly, isBefore, OLDEST } from './versions.js';
import { wakeSubjectPrefix } from './wake-listener.js';

export interface ProbeParts {
  readonly bucket: Bucket;
  readonly info: ApiResponse;
  readonly time: Reading;
  /** Errors that no caller was told; undefined for none. */
  readonly errors: { readonly wakeUps: unknown; readonly cleanup: unknown; readonly writes: unknown };
}

const WAKE_MS_MAX = 1_000;
const NOT_WOKEN = 'Waiters are not woken and poll instead, which is slower.';

export async function probe({ bucket, info, time, errors }: ProbeParts): Promise<Guarantees> {
  const { connection, layout } = bucket;
  const { version = 'of unknown version', cluster, domain } = connection.info ?? {};
  const { earliest, latest } = time;
  const away = (info.cluster?.replicas ?? []).filter(({ current, offline }) => offline === true || !current);
  const findings = [
    ...findingsOf(
      good(
        `The clock of the server that timestamps the records decides, known here to ±${Math.ceil((latest - earliest) / 2)} ms: ` +
          "no client's clock matters. On a cluster it is the clock of the stream leader: keep the clocks of its servers synchronised.",
      ),
      !layout.ownsBucket &&
        note(
          `With the layout ${layout.name}, the other software goes by the clocks of its own machines, which have to be right ` +
            'to a second; and there is no queue of waiters, and no wake-ups.',
        ),
    ),
    ...findingsOf(
      domain !== undefined &&
        note(
          `These are the locks of the JetStream domain "${domain}". Whoever connects to another domain, such as at the other end ` +
            'of a leaf node, has other locks, and may hold the same key at the same time.',
        ),
    ),
    ...versionFindings(bucket, info, version),
    ...(info.config ? diskFindings(info.config, cluster) : []),
    ...findingsOf(
      away.length > 0 &&
        warning(
          `Replicas that are away or behind: ${away.map(({ name }) => name).join(', ')}. Another loss may stop all locks.`,
        ),
      info.config && ageFinding(info.config),
      layout.queue && (await publishFinding(bucket)),
      layout.queue &&
        errors.wakeUps !== undefined &&
        note(`The last error while listening: ${messageOf(errors.wakeUps)}. ${NOT_WOKEN}`),
      isForbidden(errors.cleanup) &&
        note(
          'Records of released locks may not be deleted, and stay until the bucket deletes them by their age. Remedy: allow ' +
            'publishing to $JS.API.STREAM.MSG.DELETE of its stream.',
        ),
      isForbidden(errors.writes) &&
        note(
          `Answers to writes need one subscription each, which is slower: ${messageOf(errors.writes)}. Remedy: allow ` +
            'subscribing to everything below the inbox prefix of the connection, by default "_INBOX.>".',
        ),
    ),
  ];
  return {
    server: `NATS ${version}${cluster === undefined ? '' : `, cluster ${cluster}`}`,
    now: Math.round((earliest + latest) / 2),
    findings,
  };
}

function versionFindings(
  { connection, layout }: Bucket,
  { config }: ApiResponse,
  version: string,
): readonly Finding[] {
  if (isBefore(version, OLDEST)) {
    return [warning(`NATS ${version} is too old: locks need NATS 2.9 or later.`)];
  }
  const others = layout.ownsBucket
    ? 'Other software that writes to this bucket does not.'
    : 'The other software that takes these locks does not, so that two may get one.';
  return findingsOf(
    good(
      'Nothing depends on TTLs of single keys, which servers before 2.11 silently ignore: they would only clean up.',
    ),
    comparesTooEarly(connection.info, config?.num_replicas ?? 1) &&
      (layout.ownsBucket ? note : warning)(
        `NATS ${version} may accept two updates of one revision in a bucket with replicas. Holdfast makes up for it with ` +
          `message ids, and leaves records of released locks to the bucket's max_age. ${others} Remedy: NATS 2.9.21 or later.`,
      ),
  );
}

/** What a power failure costs. The token rises in every case: it follows the clock. */
function diskFindings(
  { storage, num_replicas: replicas }: StreamConfig,
  cluster: string | undefined,
): readonly Finding[] {
  if (storage !== 'file') {
    const servers = replicas === 1 ? 'the server' : 'its servers';
    return [
      warning(
        `The bucket lies in memory: a restart of ${servers} loses every lock. The tokens still rise. Remedy: a bucket ` +
          'with file storage.',
      ),
    ];
  }
  const lazy =
    'Records are written to a file at once, but the server has them put on the disk only now and then ' +
    '(sync_interval, two minutes unless configured)';
  if (replicas >= 3) {
    return [
      good(
        `Every lock is on a majority of ${replicas} servers before it is answered: the loss of one costs nothing. ` +
          `${lazy}: only a power failure of a majority at once may lose the locks of that time. The tokens still rise.`,
      ),
    ];
  }
  const isAlone = replicas === 1 && cluster === undefined;
  const copies = isAlone ? 'There is one copy' : 'There is one copy, though the servers form a cluster';
  const few =
    replicas === 1
      ? `${copies}: while its server is away, nothing can be locked or renewed.`
      : 'Two replicas both have to be up: three would survive the loss of one.';
  return [
    (isAlone ? note : warning)(`${few} Remedy: replicas 3, on a cluster of three servers.`),
    note(
      `A crash of the server process loses no lock. ${lazy}: a power failure may lose the locks taken in that time, and ` +
        'others may then take them. The tokens still rise. Remedy: sync_interval "always" (NATS 2.10), or three replicas.',
    ),
  ];
}

function ageFinding({ max_age }: StreamConfig): Finding {
  const hours = Math.round((max_age / 3_600_000_000_000) * 10) / 10;
  return max_age === 0
    ? note(
        'The bucket has no max_age: records that crashed processes leave stay for ever. Remedy: a max_age of 15 days.',
      )
    : good(
        `Records that crashed processes leave go after ${hours} hours; a lock may be taken for half of that at a time.`,
      );
}

/** Sends a request to a subject without listeners, to learn whether that is allowed: a publication is refused silently. */
async function publishFinding({ connection, name }: Bucket): Promise<Finding | null> {
  const prefix = wakeSubjectPrefix(name);
  try {
    await connection.request(`${prefix}probe`, '', { timeout: WAKE_MS_MAX });
    return null;
  } catch (error) {
    if (!isForbidden(error)) return null;
    return warning(
      `Wake-ups may not be published. ${NOT_WOKEN} Remedy: allow publishing and subscribing to ${prefix}>.`,
    );
  }
}

function isForbidden(error: unknown): boolean {
  const reason = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return reason instanceof Error && /permission/i.test(`${reason.name} ${reason.message}`);
}
