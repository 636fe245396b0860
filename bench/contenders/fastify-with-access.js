/** Fastify routes that answer what the service answers, with its logger, schemas and auth hook, and keep no lock. */
import { overHttp } from '../service-client.js';

export const contender = overHttp('access');
