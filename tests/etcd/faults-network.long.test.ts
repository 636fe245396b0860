import { available } from 'holdfast-test-servers';
import { describe } from 'vitest';
import { networkFaults } from '../faults/cases/network.js';
import { etcdWorld } from '../faults/etcd-world.js';

describe.runIf(available('etcd', { own: true })).concurrent('faults', () => {
  networkFaults(etcdWorld());
});
