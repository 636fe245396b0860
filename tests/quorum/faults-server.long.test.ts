import { available } from 'holdfast-test-servers';
import { describe } from 'vitest';
import { serverFaults } from '../faults/cases/server.js';
import { quorumWorld } from '../faults/quorum-world.js';

describe.runIf(available('redis', { own: true })).concurrent('faults', () => {
  serverFaults(quorumWorld());
});
