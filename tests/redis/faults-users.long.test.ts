import { available } from 'holdfast-test-servers';
import { describe } from 'vitest';
import { clockFaults } from '../faults/cases/clocks.js';
import { hintFaults } from '../faults/cases/hints.js';
import { redisWorld } from '../faults/redis-world.js';

describe.runIf(available('redis')).concurrent('faults', () => {
  hintFaults(redisWorld('ioredis', false));
  hintFaults(redisWorld('node-redis', false));
  clockFaults(redisWorld('ioredis', false));
});
