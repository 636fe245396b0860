/** The faults that every store lives through, on a table of other software. */
import { distributedLocks, lockServiceCentral } from 'holdfast/postgres/layouts';
import { available } from 'holdfast-test-servers';
import { describe } from 'vitest';
import { clockFaults } from '../faults/cases/clocks.js';
import { crowdFaults } from '../faults/cases/crowd.js';
import { networkFaults } from '../faults/cases/network.js';
import { serverFaults } from '../faults/cases/server.js';
import { postgresWorld } from '../faults/postgres-world.js';
import { tcpWay } from '../faults/ways.js';

describe.runIf(available('postgres', { own: true })).concurrent('faults', () => {
  serverFaults(postgresWorld('pg', distributedLocks));
  networkFaults(postgresWorld('pg', distributedLocks));
  clockFaults(postgresWorld('pg', lockServiceCentral));
});

describe.runIf(available('postgres', { own: true }))('a crowd', () => {
  crowdFaults(postgresWorld('pg', distributedLocks), tcpWay);
  crowdFaults(postgresWorld('pg', lockServiceCentral), tcpWay);
});
