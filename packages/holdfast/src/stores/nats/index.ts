/** The public names of the NATS store, and its options. See store.ts. */
import { InvalidArgumentError, type Store } from '../../protocol/index.js';
import { checkOptionNames } from '../../protocol/option-names.js';
import { checkLayout } from '../clients/layout.js';
import { Bucket, type BucketConfig, type BucketParts, configOf } from './bucket.js';
import { checkConnection, type NatsConnection } from './connection.js';
import type { ForeignLayout, NatsLayout } from './layout.js';
import { nativeLayout } from './record.js';
import { storeOn } from './store.js';

export type { BucketConfig } from './bucket.js';
export type { NatsConnection, NatsMessage, NatsSubscription } from './connection.js';
export type { ServerInfo } from './errors.js';
export type { NatsLayout } from './layout.js';

/** Options of `natsStore` and `createBucket`. */
export interface NatsStoreOptions {
  /** The KV bucket. Default 'holdfast'. Created on first use where it is missing. Processes that share locks use the same. */
  readonly bucket?: string;
  /** How many servers store each lock. Default 1. Three survive the loss of one, and need a cluster of three. */
  readonly replicas?: number;
  /** Shares locks with other software, in its bucket: a layout of `holdfast/nats/layouts`. Default none. */
  readonly layout?: NatsLayout;
}

/** The connection is used as it is and never closed. Nothing is sent before the first command. */
export function natsStore(connection: NatsConnection, options: NatsStoreOptions = {}): Store {
  const parts = partsOf(options);
  return storeOn(checkConnection(connection), parts);
}

/** Creates the bucket where it is missing, and refuses one that is not fit for locks. A store does this on first use. */
export async function createBucket(
  connection: NatsConnection,
  options: NatsStoreOptions = {},
): Promise<{ readonly created: boolean }> {
  const parts = partsOf(options);
  return { created: await new Bucket(checkConnection(connection), parts).create() };
}

/** The configuration of the stream that `createBucket` creates, for JetStream's API and tools. */
export function bucketConfig(options: NatsStoreOptions = {}): BucketConfig {
  return configOf(partsOf(options));
}

function partsOf(options: NatsStoreOptions): BucketParts {
  checkOptionNames(options, ['bucket', 'replicas', 'layout']);
  const layout = checkLayout<ForeignLayout>(options.layout, 'nats') ?? nativeLayout;
  const { bucket = layout.bucket, replicas } = options;
  if (typeof bucket !== 'string' || !/^[A-Za-z0-9_-]+$/.test(bucket)) {
    throw new InvalidArgumentError('The name of a bucket consists of letters, digits, "-" and "_".');
  }
  if (replicas !== undefined && !(Number.isInteger(replicas) && replicas >= 1 && replicas <= 5)) {
    throw new InvalidArgumentError(
      'The number of replicas has to be from 1 to 5; 3 survive the loss of one.',
    );
  }
  return { bucket, replicas, layout };
}
