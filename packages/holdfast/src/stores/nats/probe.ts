/** What a NATS server and the bucket, as configured, guarantee: what a crash or a power failure costs. */
import type { Finding, Guarantees } from '../../protocol/index.js';
import { messageOf } from '../clients/errors.js';
import type { Reading } from '../compare-and-swap/register.js';
import type { ApiResponse, NatsConnection, StreamConfig } from './connection.js';
import type { Layout } from './layout.js';
import { comparesTooEarly, isBefore, OLDEST } from './versions.js';
import { wakeSubjectPrefix } from './wake-listener.js';

export interface ProbeParts {
  readonly connection: NatsConnection;
  readonly bucketName: string;
  readonly info: ApiResponse;
  readonly time: Reading;
  readonly layout: Layout;
  /** Errors that no caller was told; undefined for none. */
  readonly errors: { readonly wakeUps: unknown; readonly cleanup: unknown; readonly writes: unknown };
}

const WAKE_MS_MAX = 1_000;

export async function probe(parts: ProbeParts): Promise<Guarantees> {
  const { connection, info, time } = parts;
  const version = connection.info?.version ?? 'of unknown version';
  const cluster = connection.info?.cluster;
  const findings = [
    timeFinding(time),
    ...layoutFindings(parts.layout),
    ...versionFindings(parts, version),
    ...diskFindings(info, cluster),
    ...replicaFindings(info),
    ...ageFindings(info.config),
    ...(parts.layout.queue ? await wakeUpFindings(parts) : []),
    ...cleanupFindings(parts.errors.cleanup),
    ...writeFindings(parts.errors.writes),
  ];
  return {
    server: `NATS ${version}${cluster === undefined ? '' : `, cluster ${cluster}`}`,
    now: Math.round((time.earliest + time.latest) / 2),
    findings,
  };
}

function timeFinding({ earliest, latest }: Reading): Finding {
  const errorMs = Math.ceil((latest - earliest) / 2);
  return {
    level: 'good',
    text:
      `The clock of the server that timestamps the records decides, known here to ±${errorMs} ms: no client's clock ` +
      'matters. On a cluster it is the clock of the stream leader: keep the clocks of its servers synchronised.',
  };
}

function layoutFindings({ name, ownsBucket }: Layout): readonly Finding[] {
  if (ownsBucket) return [];
  const text =
    `With the layout ${name}, the other software goes by the clocks of its own machines, which have to be right to a ` +
    'second; and there is no queue of waiters, and no wake-ups.';
  return [{ level: 'note', text }];
}

function versionFindings({ connection, info, layout }: ProbeParts, version: string): readonly Finding[] {
  if (isBefore(version, OLDEST)) {
    return [{ level: 'warning', text: `NATS ${version} is too old: locks need NATS 2.9 or later.` }];
  }
  const ttls =
    'Nothing depends on TTLs of single keys, which servers before 2.11 ignore without a word: they would only clean up.';
  const findings: Finding[] = [{ level: 'good', text: ttls }];
  if (comparesTooEarly(connection.info, info.config?.num_replicas ?? 1)) {
    const isShared = !layout.ownsBucket;
    const others = isShared
      ? 'The other software that takes these locks does not, so that two may get one.'
      : 'Other software that writes to this bucket does not.';
    findings.push({
      level: isShared ? 'warning' : 'note',
      text:
        `NATS ${version} may accept two updates of one revision in a bucket with replicas. Holdfast makes up for it with ` +
        `message ids, and leaves records of released locks to the bucket's max_age. ${others} Remedy: NATS 2.9.21 or later.`,
    });
  }
  return findings;
}

/** What a power failure costs. The token rises in every case: it follows the clock. */
function diskFindings({ config }: ApiResponse, cluster: string | undefined): readonly Finding[] {
  if (!config) return [];
  const { storage, num_replicas: replicas } = config;
  if (storage !== 'file') {
    const text = `The bucket lies in memory: a restart of ${replicas === 1 ? 'the server' : 'its servers'} loses every lock.`;
    return [{ level: 'warning', text: `${text} The tokens still rise. Remedy: a bucket with file storage.` }];
  }
  const lazy =
    'Records are written to a file at once, but the server has them put on the disk only now and then ' +
    '(sync_interval, two minutes unless configured)';
  if (replicas >= 3) {
    return [
      {
        level: 'good',
        text:
          `Every lock is on a majority of ${replicas} servers before it is answered: the loss of one costs nothing. ` +
          `${lazy}: only a power failure of a majority at once may lose the locks of that time. The tokens still rise.`,
      },
    ];
  }
  const alone =
    cluster === undefined
      ? 'There is one copy: while its server is away, nothing can be locked or renewed.'
      : 'There is one copy, though the servers form a cluster: while its server is away, nothing can be locked or renewed.';
  const few =
    replicas === 1 ? alone : 'Two replicas both have to be up: three would survive the loss of one.';
  return [
    {
      level: replicas === 1 && cluster === undefined ? 'note' : 'warning',
      text: `${few} Remedy: replicas 3, on a cluster of three servers.`,
    },
    {
      level: 'note',
      text:
        `A crash of the server process loses no lock. ${lazy}: a power failure may lose the locks taken in that time, and ` +
        'others may then take them. The tokens still rise. Remedy: sync_interval "always" (NATS 2.10), or three replicas.',
    },
  ];
}

function replicaFindings({ cluster }: ApiResponse): readonly Finding[] {
  const away = (cluster?.replicas ?? []).filter(({ current, offline }) => offline === true || !current);
  if (away.length === 0) return [];
  const names = away.map(({ name }) => name).join(', ');
  return [
    {
      level: 'warning',
      text: `Replicas that are away or behind: ${names}. Another loss may stop all locks.`,
    },
  ];
}

function ageFindings(config: StreamConfig | undefined): readonly Finding[] {
  if (!config) return [];
  const hours = config.max_age / 3_600_000_000_000;
  if (hours === 0) {
    const text =
      'The bucket has no max_age: records that crashed processes leave stay for ever. Remedy: a max_age of 2 days.';
    return [{ level: 'note', text }];
  }
  const days = `${Math.round(hours * 10) / 10} hours`;
  return [
    {
      level: 'good',
      text: `Records that crashed processes leave go after ${days}; a lock may be taken for half of that at a time.`,
    },
  ];
}

/** Sends a request to a subject without listeners, to learn whether that is allowed: a publication is refused silently. */
async function wakeUpFindings({ connection, bucketName, errors }: ProbeParts): Promise<readonly Finding[]> {
  const prefix = wakeSubjectPrefix(bucketName);
  const slow = 'Waiters are not woken and poll instead, which is slower.';
  const findings: Finding[] = [];
  try {
    await connection.request(`${prefix}probe`, '', { timeout: WAKE_MS_MAX });
  } catch (error) {
    if (isForbidden(error)) {
      findings.push({
        level: 'warning',
        text: `Wake-ups may not be published. ${slow} Remedy: allow publishing and subscribing to ${prefix}>.`,
      });
    }
  }
  if (errors.wakeUps !== undefined) {
    const text = `The last error while listening: ${messageOf(errors.wakeUps)}. ${slow}`;
    findings.push({ level: 'note', text });
  }
  return findings;
}

function isForbidden(error: unknown): boolean {
  const reason = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return reason instanceof Error && /permission/i.test(`${reason.name} ${reason.message}`);
}

function cleanupFindings(error: unknown): readonly Finding[] {
  if (error === undefined || !isForbidden(error)) return [];
  const text =
    'Records of released locks may not be deleted, and stay until the bucket deletes them by their age. Remedy: allow ' +
    'publishing to $JS.API.STREAM.MSG.DELETE of its stream.';
  return [{ level: 'note', text }];
}

function writeFindings(error: unknown): readonly Finding[] {
  if (error === undefined || !isForbidden(error)) return [];
  const text =
    `Answers to writes need one subscription each, which is slower: ${messageOf(error)}. Remedy: allow subscribing to ` +
    'everything below the inbox prefix of the connection, by default "_INBOX.>".';
  return [{ level: 'note', text }];
}
