/** Layouts of other software in etcd, for the option `layout` of `etcdStore`. */
import { centralLayout } from '../compare-and-swap/central-layout.js';

/** Other software whose records the store can use. `holdfast/etcd/layouts` exports all that there are. */
export interface EtcdLayout {
  readonly store: 'etcd';
  /** As in URLs: `?layout=lock-service-central`. */
  readonly name: string;
}

/** The records of LockServiceCentral. */
export const lockServiceCentral: EtcdLayout = centralLayout('etcd');
