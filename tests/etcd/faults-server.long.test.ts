import { available } from 'holdfast-test-servers';
import { describe } from 'vitest';
import { serverFaults } from '../faults/cases/server.js';
import { etcdWorld } from '../faults/etcd-world.js';

describe.runIf(available('etcd', { own: true })).concurrent('faults', () => {
  serverFaults(etcdWorld());
});
