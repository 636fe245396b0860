import { available } from 'holdfast-test-servers';
import { describe } from 'vitest';
import { clockFaults } from '../faults/cases/clocks.js';
import { firestoreWorld } from '../faults/firestore-world.js';

describe.runIf(available('firestore', { own: true })).concurrent('faults', () => {
  clockFaults(firestoreWorld());
});
