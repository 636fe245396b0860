import { available } from 'holdfast-test-servers';
import { describe } from 'vitest';
import { networkFaults } from '../faults/cases/network.js';
import { natsWorld } from '../faults/nats-world.js';

describe.runIf(available('nats', { own: true })).concurrent('faults', () => {
  networkFaults(natsWorld());
});
