import { available } from 'holdfast-test-servers';
import { describe } from 'vitest';
import { clockFaults } from '../faults/cases/clocks.js';
import { hintFaults } from '../faults/cases/hints.js';
import { postgresWorld } from '../faults/postgres-world.js';

describe.runIf(available('postgres')).concurrent('faults', () => {
  hintFaults(postgresWorld('pg'));
  hintFaults(postgresWorld('postgres'));
  clockFaults(postgresWorld('pg'));
});
