import { available } from 'holdfast-test-servers';
import { describe } from 'vitest';
import { fleetCases, openFleet } from './postgres-fleet.js';
import { CENTRAL } from './postgres-software.js';

describe.runIf(available('postgres'))('a fleet on the layout lock-service-central of PostgreSQL', () => {
  fleetCases(openFleet(CENTRAL));
});
