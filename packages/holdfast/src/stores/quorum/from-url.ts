/** `redis-quorum://HOST,HOST,HOST` and `rediss-quorum://`: one client per server, the store on them, and their enrolment. */
import { InvalidArgumentError, type Store } from '../../protocol/index.js';
import { createdOnce, type Migration, type MigrationOptions, refuseOptions } from '../clients/migration.js';
import { loadFirst, migrateOn, type OpenedClient, storeOn } from '../clients/opened-client.js';
import type { RedisClient } from '../redis/clients.js';
import { redisTarget } from '../redis/from-url.js';
import { REDIS_CLIENTS, type Target } from '../redis/open-client.js';
import { enrolMembers } from './enrolment.js';
import { quorumStore } from './store.js';

export async function openStore(scheme: string, rest: string, clients = REDIS_CLIENTS): Promise<Store> {
  const { targets, options } = quorumTargets(scheme, rest);
  return storeOn(await openAll(targets, clients), (opened) => quorumStore(opened, options));
}

export async function migrationOf(scheme: string, rest: string, given: MigrationOptions): Promise<Migration> {
  refuseOptions(given, ['supabase', 'timeToLive'], scheme);
  const { targets, options } = quorumTargets(scheme, rest);
  return {
    kind: 'quorum',
    name: `${targets.length} servers`,
    script:
      'There is no script: the enrolment of a server names its run, and is written by "holdfast migrate".',
    async apply() {
      return migrateOn(
        await openAll(targets, REDIS_CLIENTS),
        'the servers were not enrolled',
        async (opened) => {
          const { enrolled, isNew } = await enrolMembers(opened, options);
          const again = enrolled.map((place) => `Server ${place} was enrolled again.`);
          return createdOnce(isNew, isNew ? [] : again);
        },
      );
    },
  };
}

function quorumTargets(scheme: string, rest: string) {
  const secure = scheme.startsWith('rediss') || scheme.startsWith('valkeys');
  const { target, options } = redisTarget(`${secure ? 'rediss' : 'redis'}+cluster`, rest);
  const { addresses } = target;
  if (addresses.length < 3) {
    throw new InvalidArgumentError(
      `A quorum has 3, 5, 7 or 9 servers: ${scheme}://HOST:PORT,HOST:PORT,HOST:PORT.`,
    );
  }
  const targets = addresses.map((address): Target => ({ ...target, cluster: false, addresses: [address] }));
  return { targets, options };
}

/** Connects to all servers at once; those that do not answer are connected later, by their clients. */
async function openAll(
  targets: readonly Target[],
  candidates: typeof REDIS_CLIENTS,
): Promise<OpenedClient<readonly RedisClient[]>> {
  const open = await loadFirst('Redis', candidates);
  const opened = await Promise.all(targets.map((target) => open(target)));
  const connections = opened.map(({ connection }) => connection);
  return {
    client: opened.map(({ client }) => client),
    connection: {
      where: connections.map(({ where }) => where).join(', '),
      // The store says itself which servers cannot be used, and why.
      error: () => null,
      end: async () => void (await Promise.all(connections.map((connection) => connection.end()))),
    },
  };
}
