/** LockServiceCentral's layout for engines that keep its records as fields, in the form that a program passes to the store. */
import type { InstanceLocks } from '../../protocol/index.js';
import type { NamedLayout } from '../clients/layout.js';
import { CentralInstances, type CentralParts } from './central-instances.js';
import { CENTRAL_LAYOUT, centralRecords } from './lock-service-central.js';
import type { RecordLayout } from './records.js';

/** The part that stores need, which users do not see. */
export interface CentralLayout<S extends string> extends NamedLayout {
  readonly store: S;
  readonly records: RecordLayout;
  instancesOn<V>(parts: CentralParts<V>): InstanceLocks;
}

export function centralLayout<S extends string>(store: S): CentralLayout<S> {
  return {
    store,
    name: CENTRAL_LAYOUT,
    records: centralRecords,
    instancesOn: (parts) => new CentralInstances(parts),
  };
}
