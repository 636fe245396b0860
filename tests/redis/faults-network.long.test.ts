import { available } from 'holdfast-test-servers';
import { describe } from 'vitest';
import { networkFaults } from '../faults/cases/network.js';
import { redisWorld } from '../faults/redis-world.js';

describe.runIf(available('redis')).concurrent('faults', () => {
  networkFaults(redisWorld('ioredis', false));
  networkFaults(redisWorld('node-redis', false));
});
