import { available } from 'holdfast-test-servers';
import { describe } from 'vitest';
import { networkFaults } from '../faults/cases/network.js';
import { dynamodbWorld } from '../faults/dynamodb-world.js';

describe.runIf(available('dynamodb', { own: true })).concurrent('faults', () => {
  networkFaults(dynamodbWorld());
});
