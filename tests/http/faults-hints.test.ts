import { afterAll, describe } from 'vitest';
import { hintFaults } from '../faults/cases/hints.js';
import { clearWorld, httpWorld } from './world.js';

afterAll(clearWorld);

describe.concurrent('faults', () => hintFaults(httpWorld));
