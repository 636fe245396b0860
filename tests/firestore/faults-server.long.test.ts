import { available } from 'holdfast-test-servers';
import { describe } from 'vitest';
import { serverFaults } from '../faults/cases/server.js';
import { firestoreWorld } from '../faults/firestore-world.js';

describe.runIf(available('firestore', { own: true }))('faults', () => {
  serverFaults(firestoreWorld());
});
