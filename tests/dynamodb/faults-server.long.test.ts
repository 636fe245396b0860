import { available } from 'holdfast-test-servers';
import { describe } from 'vitest';
import { serverFaults } from '../faults/cases/server.js';
import { dynamodbWorld } from '../faults/dynamodb-world.js';

describe.runIf(available('dynamodb', { own: true }))('faults', () => {
  serverFaults(dynamodbWorld());
});
