import { available } from 'holdfast-test-servers';
import { describe } from 'vitest';
import { crowdFaults } from '../faults/cases/crowd.js';
import { mysqlWorld } from '../faults/mysql-world.js';
import { tcpWay } from '../faults/ways.js';

describe.runIf(available('mariadb', { own: true }))('faults', () => {
  crowdFaults(mysqlWorld('mysql2'), tcpWay);
});
