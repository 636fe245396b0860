/** Three NATS servers with every bucket in three replicas, as a world to break node by node. */
import { connect } from '@nats-io/transport-node';
import { type NatsCluster, type NatsNode, startNatsCluster } from 'holdfast-test-servers';
import type { Place, World } from './world.js';

export interface ClusterWorld extends World {
  readonly cluster: NatsCluster;
}

/** Every place is a bucket. Users come through the first node unless told; each knows of the others. */
export async function natsClusterWorld(): Promise<ClusterWorld> {
  const cluster = await startNatsCluster();
  const [first] = cluster.nodes;
  if (!first) throw new Error('There is no node.');
  let buckets = 0;
  const openPlace = async (): Promise<Place> => {
    const url = new URL(`nats://${first.host}:${first.port}/locks-${buckets++}?replicas=3`);
    for (const { host, port } of cluster.nodes) url.searchParams.append('server', `${host}:${port}`);
    return {
      url: url.href,
      host: first.host,
      port: first.port,
      cutListeners: () => Promise.resolve(0),
      stop: () => Promise.resolve(),
    };
  };
  return {
    name: 'NATS cluster',
    driver: 'nats',
    durable: true,
    cluster,
    startServer: () => Promise.reject(new Error('There are three: break the nodes of `cluster`.')),
    openPlace,
    close: () => cluster.stop(),
  };
}

/** The node that leads the bucket of a place, and the two others. */
export async function ranksOf({ nodes, urls }: NatsCluster, { url }: Place): Promise<Ranks> {
  const bucket = new URL(url).pathname.slice(1);
  const connection = await connect({ servers: [...urls] });
  const answer = await connection
    .request(`$JS.API.STREAM.INFO.KV_${bucket}`, '', { timeout: 5_000 })
    .finally(() => connection.close());
  const { cluster } = answer.json<{ readonly cluster?: { readonly leader?: string } }>();
  const leader = nodes.find(({ name }) => name === cluster?.leader);
  const [one, other] = nodes.filter((node) => node !== leader);
  if (!leader || !one || !other) throw new Error(`The bucket ${bucket} has no leader.`);
  return { leader, followers: [one, other] };
}

export interface Ranks {
  readonly leader: NatsNode;
  readonly followers: readonly [NatsNode, NatsNode];
}
