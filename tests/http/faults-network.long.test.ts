import { afterAll, describe } from 'vitest';
import { networkFaults } from '../faults/cases/network.js';
import { clearWorld, httpWorld } from './world.js';

afterAll(clearWorld);

describe.concurrent('faults', () => networkFaults(httpWorld));
