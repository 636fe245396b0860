import { available } from 'holdfast-test-servers';
import { describe } from 'vitest';
import { serverFaults } from '../faults/cases/server.js';
import { natsWorld } from '../faults/nats-world.js';

describe.runIf(available('nats', { own: true })).concurrent('faults', () => {
  serverFaults(natsWorld());
});
