/** The bucket of a NATS store: made through a connection of its own, or printed as the configuration of its stream. */
import { HoldfastError, StoreError } from '../protocol/index.js';
import { explain } from '../stores/clients/errors.js';
import { loadFirst } from './client-package.js';
import { FIRST_VERSION, type Migration, type MigrationOptions, refuseOptions } from './migration.js';
import { type NatsScheme, natsTarget } from './nats.js';
import { NATS_CLIENTS } from './nats-client.js';

export async function natsMigration(
  scheme: NatsScheme,
  rest: string,
  options: MigrationOptions,
): Promise<Migration> {
  refuseOptions(options, ['supabase', 'timeToLive'], scheme);
  const { target, options: wanted } = await natsTarget(scheme, rest);
  const { createBucket, bucketConfig } = await import('../stores/nats/index.js');
  const config = bucketConfig(wanted);
  return {
    kind: 'bucket',
    name: config.name.replace(/^KV_/, ''),
    script: JSON.stringify(config, null, 2),
    async apply() {
      const open = await loadFirst('NATS', NATS_CLIENTS);
      const { client, connection } = await open(target);
      try {
        const { created } = await createBucket(client, wanted);
        return { from: created ? 0 : FIRST_VERSION, to: FIRST_VERSION, notes: [] };
      } catch (error) {
        if (error instanceof HoldfastError) throw error;
        const cause = explain(error, connection.trouble(), connection.where);
        throw new StoreError(`the bucket was not made: ${cause.message}`, { operation: 'migrate', cause });
      } finally {
        await connection.end();
      }
    },
  };
}
