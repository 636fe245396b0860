import { available } from 'holdfast-test-servers';
import { describe } from 'vitest';
import { networkFaults } from '../faults/cases/network.js';
import { postgresWorld } from '../faults/postgres-world.js';

describe.runIf(available('postgres')).concurrent('faults', () => {
  networkFaults(postgresWorld('pg'));
  networkFaults(postgresWorld('postgres'));
});
