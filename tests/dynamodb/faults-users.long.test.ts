import { available } from 'holdfast-test-servers';
import { describe } from 'vitest';
import { clockFaults } from '../faults/cases/clocks.js';
import { dynamodbWorld } from '../faults/dynamodb-world.js';

describe.runIf(available('dynamodb', { own: true })).concurrent('faults', () => {
  clockFaults(dynamodbWorld());
});
