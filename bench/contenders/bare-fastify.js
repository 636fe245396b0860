/** A fastify route that answers what the service answers, with its logger, schemas and auth hook, and keeps no lock. */
import { overHttp } from '../service-client.js';

export const contender = overHttp('bare');
