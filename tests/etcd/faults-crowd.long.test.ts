import { available } from 'holdfast-test-servers';
import { describe } from 'vitest';
import { crowdFaults } from '../faults/cases/crowd.js';
import { etcdWorld } from '../faults/etcd-world.js';
import { tcpWay } from '../faults/ways.js';

describe.runIf(available('etcd', { own: true }))('faults', () => {
  crowdFaults(etcdWorld(), tcpWay);
});
