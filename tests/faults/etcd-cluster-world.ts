/** Three members of etcd, as a world to break member by member. */
import { type EtcdCluster, startEtcdCluster } from 'holdfast-test-servers';
import type { Place, World } from './world.js';

export interface EtcdClusterWorld extends World {
  readonly cluster: EtcdCluster;
}

/** Every place is a prefix. Users ask the first member first unless told; each knows of the others. */
export async function etcdClusterWorld(): Promise<EtcdClusterWorld> {
  const cluster = await startEtcdCluster();
  const [first] = cluster.nodes;
  if (!first) throw new Error('There is no node.');
  let places = 0;
  const openPlace = async (): Promise<Place> => {
    const url = new URL(`${first.url}/locks-${places++}`);
    for (const node of cluster.nodes) url.searchParams.append('endpoint', node.url);
    return {
      url: url.href,
      host: first.host,
      port: first.port,
      cutListeners: () => Promise.resolve(0),
      stop: () => Promise.resolve(),
    };
  };
  return {
    name: 'etcd cluster',
    driver: 'etcd',
    durable: true,
    cluster,
    startServer: () => Promise.reject(new Error('There are three: break the nodes of `cluster`.')),
    openPlace,
    close: () => cluster.stop(),
  };
}
