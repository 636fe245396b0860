import { available } from 'holdfast-test-servers';
import { describe } from 'vitest';
import { crowdFaults } from '../faults/cases/crowd.js';
import { firestoreWorld } from '../faults/firestore-world.js';
import { tcpWay } from '../faults/ways.js';

describe.runIf(available('firestore', { own: true }))('faults', () => {
  crowdFaults(firestoreWorld(), tcpWay);
});
