import { available } from 'holdfast-test-servers';
import { describe } from 'vitest';
import { serverFaults } from '../faults/cases/server.js';
import { redisWorld } from '../faults/redis-world.js';

describe.runIf(available('redis')).concurrent('faults', () => {
  serverFaults(redisWorld('ioredis', false));
  serverFaults(redisWorld('ioredis', true));
  serverFaults(redisWorld('node-redis', true));
});
