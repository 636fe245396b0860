import { available } from 'holdfast-test-servers';
import { describe } from 'vitest';
import { crowdFaults } from '../faults/cases/crowd.js';
import { natsWorld } from '../faults/nats-world.js';
import { tcpWay } from '../faults/ways.js';

describe.runIf(available('nats', { own: true }))('faults', () => {
  crowdFaults(natsWorld(), tcpWay);
});
