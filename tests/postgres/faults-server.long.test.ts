import { available } from 'holdfast-test-servers';
import { describe } from 'vitest';
import { serverFaults } from '../faults/cases/server.js';
import { postgresWorld } from '../faults/postgres-world.js';

describe.runIf(available('postgres')).concurrent('faults', () => {
  serverFaults(postgresWorld('pg'));
  serverFaults(postgresWorld('postgres'));
});
