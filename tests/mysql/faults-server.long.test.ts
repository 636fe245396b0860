import { available } from 'holdfast-test-servers';
import { describe } from 'vitest';
import { serverFaults } from '../faults/cases/server.js';
import { mysqlWorld } from '../faults/mysql-world.js';

describe.runIf(available('mariadb', { own: true }))('faults', () => {
  serverFaults(mysqlWorld('mysql2'));
  serverFaults(mysqlWorld('mariadb'));
});
