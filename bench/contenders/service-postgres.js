/** The service on PostgreSQL, in a process of its own: one request to acquire, one to release. */
import { overHttp } from '../service-client.js';
import { contender as direct } from './holdfast-postgres.js';

/** @type {import('../types.d.ts').Contender} */
export const contender = { ...overHttp('service'), ...(direct.prepare && { prepare: direct.prepare }) };
