/** The guarantees of a Redis server as configured: the cost of a crash, a failover or a full memory. */
import type { Finding, Guarantees } from '../../protocol/index.js';
import { messageOf } from '../clients/errors.js';
import { findingsOf, good, note, warning } from '../clients/findings.js';
import { listOf, numberOf, textOf } from './codec.js';
import type { Connection, Server } from './connection.js';

type Facts = ReadonlyMap<string, string>;

interface ServerFacts {
  readonly info: Facts;
  /** Null if reading it is forbidden. */
  readonly config: Facts | null;
  readonly now: number;
}

const VERSION_MIN = 5;
const CONFIG_NAMES = ['save', 'appendfsync'] as const;
const NOT_WOKEN = 'Waiters are not woken and poll instead, which is slower.';

export async function probe(
  connection: Connection,
  channelPrefix: string,
  listenError: unknown,
): Promise<Guarantees> {
  const servers = await connection.servers();
  const all = await Promise.all(servers.map(factsOf));
  const [first] = all;
  const [server] = servers;
  if (!first || !server) throw new Error('The cluster client knows no server yet.');
  const isOfCluster = first.info.get('cluster_enabled') === '1';
  const findings = findingsOf(
    ...all.flatMap(serverFindings),
    isOfCluster &&
      !connection.isCluster &&
      warning(
        'This server is part of a Redis Cluster, and the client is for a single server: use a cluster client.',
      ),
    await publishFinding(server, channelPrefix),
    listenError !== undefined &&
      note(`The last error while listening: ${messageOf(listenError)}. ${NOT_WOKEN}`),
    ...connection.settings(),
  );
  return { server: nameOf(first.info, servers.length), now: first.now, findings: distinct(findings) };
}

export async function factsOf(server: Server): Promise<ServerFacts> {
  const [time, info, ...config] = await Promise.all([
    server.send('TIME'),
    server.send('INFO'),
    ...CONFIG_NAMES.map((name) => configOf(server, name)),
  ]);
  const [seconds, micros] = listOf(time);
  return {
    info: infoOf(textOf(info)),
    config: config.includes(null)
      ? null
      : new Map(config.map((value, at) => [CONFIG_NAMES[at] ?? '', value ?? ''])),
    now: numberOf(seconds) * 1_000 + Math.floor(numberOf(micros) / 1_000),
  };
}

/** Null for hosted servers that forbid the command, or do not know it. */
async function configOf(server: Server, name: string): Promise<string | null> {
  try {
    const reply = await server.send('CONFIG', 'GET', name);
    if (Array.isArray(reply)) return reply.length === 2 ? textOf(reply[1]) : null;
    const [value] = reply instanceof Map ? reply.values() : Object.values(reply ?? {});
    return value === undefined ? null : textOf(value);
  } catch (error) {
    if (error instanceof Error) return null;
    throw error;
  }
}

function infoOf(text: string): Facts {
  const lines = text.split('\r\n').filter((line) => line.includes(':') && !line.startsWith('#'));
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]));
}

export function nameOf(info: Facts, servers: number): string {
  const valkey = info.get('valkey_version');
  const name = valkey ? `Valkey ${valkey}` : `Redis ${info.get('redis_version') ?? 'of unknown version'}`;
  return servers > 1 ? `${name}, a cluster of ${servers}` : name;
}

function serverFindings({ info, config }: ServerFacts): readonly Finding[] {
  const version = info.get('redis_version') ?? '';
  return findingsOf(
    good("The server's clock decides, read inside the script: no client's clock matters."),
    Number.parseInt(version, 10) < VERSION_MIN &&
      warning(`Redis ${version} is too old: scripts that read the time need Redis ${VERSION_MIN} or later.`),
    diskFinding(info, config),
    replicaFinding(info),
    memoryFinding(info),
  );
}

/** The cost of a crash of the server. The token rises in every case, because it follows the clock. */
function diskFinding(info: Facts, config: Facts | null): Finding {
  const appends = info.get('aof_enabled') === '1';
  if (appends && config?.get('appendfsync') === 'always') {
    return good('Every change is on disk before it is answered: a crash loses no lock.');
  }
  if (appends) {
    const known =
      config?.get('appendfsync') === 'everysec' ? '' : ' (appendfsync could not be read as "always")';
    return note(
      `Changes go to disk about once a second${known}: a crash of the machine may lose the locks taken in the last ` +
        'second or two, and others may then take them. The tokens still rise.',
    );
  }
  const snapshot =
    'Only snapshots are written to disk: a crash loses the locks taken since the last one, and others may then take them.';
  const nothing = 'Nothing is written to disk: a restart loses every lock, and others may then take them.';
  const unknown =
    'CONFIG may not be read, so it is not known whether snapshots are written: expect a crash to lose locks.';
  const text = config === null ? unknown : config.get('save') ? snapshot : nothing;
  return warning(`${text} The tokens still rise. Remedy: appendonly yes.`);
}

function replicaFinding(info: Facts): Finding | null {
  if (info.get('role') !== 'master' && info.has('role')) {
    return warning('This server is a replica and cannot store locks. Connect to its master.');
  }
  const replicas = Number(info.get('connected_slaves') ?? 0);
  if (replicas === 0) return null;
  return note(
    `It has ${replicas === 1 ? 'a replica' : `${replicas} replicas`}, which follow a moment later: a failover may ` +
      'lose the last grants, and others may then take those locks. The tokens still rise: guard what must not break.',
  );
}

export function memoryFinding(info: Facts): Finding {
  const policy = info.get('maxmemory_policy');
  const isLimited = Number(info.get('maxmemory') ?? 0) > 0;
  if (policy === undefined) return note('The eviction policy could not be read.');
  if (policy === 'noeviction') {
    const full = 'When its memory is full, locks cannot be acquired or renewed; no lock is deleted.';
    return isLimited ? note(full) : good('No lock is deleted for lack of memory.');
  }
  const when = isLimited ? 'when memory is full' : 'once a memory limit is set and reached';
  const text = `Its eviction policy is ${policy}: ${when}, it may delete locks in use. Remedy: maxmemory-policy noeviction.`;
  return isLimited ? warning(text) : note(text);
}

/** Publishes to a channel without listeners, to learn whether that is allowed. */
async function publishFinding(server: Server, channelPrefix: string): Promise<Finding | null> {
  try {
    await server.send('PUBLISH', `${channelPrefix}probe`, 'probe');
    return null;
  } catch (error) {
    const remedy = `Remedy: allow the channels ${channelPrefix}*.`;
    return warning(`Wake-ups may not be published (${messageOf(error)}). ${NOT_WOKEN} ${remedy}`);
  }
}

function distinct(findings: readonly Finding[]): readonly Finding[] {
  return [...new Map(findings.map((finding) => [finding.text, finding])).values()];
}
