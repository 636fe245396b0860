import { available } from 'holdfast-test-servers';
import { describe } from 'vitest';
import { crowdFaults } from '../faults/cases/crowd.js';
import { dynamodbWorld } from '../faults/dynamodb-world.js';
import { dynamodbWay } from '../faults/ways.js';

describe.runIf(available('dynamodb', { own: true }))('faults', () => {
  crowdFaults(dynamodbWorld(), dynamodbWay);
});
