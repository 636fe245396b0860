import { available } from 'holdfast-test-servers';
import { describe } from 'vitest';
import { networkFaults } from '../faults/cases/network.js';
import { mysqlWorld } from '../faults/mysql-world.js';

describe.runIf(available('mariadb', { own: true }))('faults', () => {
  networkFaults(mysqlWorld('mysql2'));
  networkFaults(mysqlWorld('mariadb'));
});
