/** Two bare fastify routes that answer what the service answers: no lock, no log, no access, no schema. */
import { overHttp } from '../service-client.js';

export const contender = overHttp('bare');
