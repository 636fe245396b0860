import { afterAll, describe } from 'vitest';
import { serverFaults } from '../faults/cases/server.js';
import { clearWorld, httpWorld } from './world.js';

afterAll(clearWorld);

describe.concurrent('faults', () => serverFaults(httpWorld));
