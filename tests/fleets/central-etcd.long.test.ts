import { available } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe } from 'vitest';
import { exclusionCases } from './cases-exclusion.js';
import { plainCases } from './cases-plain.js';
import { processCases } from './cases-process.js';
import { raceCase } from './cases-race.js';
import { EtcdFleet } from './central-etcd.js';

describe.runIf(available('etcd'))('a fleet on the layout lock-service-central of etcd', () => {
  const fleet = new EtcdFleet();
  beforeAll(() => fleet.open());
  afterAll(() => fleet.close());
  // The longest first: they run side by side.
  processCases(() => fleet);
  exclusionCases(() => fleet, { heartbeats: 3 });
  plainCases(() => fleet);
  raceCase(() => fleet);
});
