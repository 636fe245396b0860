import { available } from 'holdfast-test-servers';
import { describe } from 'vitest';
import { networkFaults } from '../faults/cases/network.js';
import { firestoreWorld } from '../faults/firestore-world.js';

describe.runIf(available('firestore', { own: true })).concurrent('faults', () => {
  networkFaults(firestoreWorld());
});
