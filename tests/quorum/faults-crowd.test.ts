import { available } from 'holdfast-test-servers';
import { describe } from 'vitest';
import { crowdFaults } from '../faults/cases/crowd.js';
import { quorumWay, quorumWorld } from '../faults/quorum-world.js';

describe.runIf(available('redis', { own: true }))('faults', () => {
  crowdFaults(quorumWorld(), quorumWay);
});
