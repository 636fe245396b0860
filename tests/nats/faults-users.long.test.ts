import { available } from 'holdfast-test-servers';
import { describe } from 'vitest';
import { clockFaults } from '../faults/cases/clocks.js';
import { natsWorld } from '../faults/nats-world.js';

describe.runIf(available('nats', { own: true })).concurrent('faults', () => {
  clockFaults(natsWorld());
});
