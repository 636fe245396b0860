/** The service on Redis, in a process of its own: one request to acquire, one to release. */
import { overHttp } from '../service-client.js';

export const contender = overHttp('service');
