import { available } from 'holdfast-test-servers';
import { describe } from 'vitest';
import { clockFaults } from '../faults/cases/clocks.js';
import { mysqlWorld } from '../faults/mysql-world.js';

describe.runIf(available('mariadb', { own: true }))('faults', () => {
  clockFaults(mysqlWorld('mysql2'));
  clockFaults(mysqlWorld('mariadb'));
});
