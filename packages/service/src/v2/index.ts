/** The native API. */
import type { Part } from '../http/service-parts.js';
import { acquireRoute } from './acquire.js';
import { batchRoute } from './batch.js';
import { endingRoutes } from './endings.js';
import { eventRoutes } from './events.js';
import { lookingRoutes } from './looking.js';
import { Scans } from './scans.js';
import { addSchemas } from './schemas.js';

export const v2: Part = {
  name: 'v2',
  register(app, parts) {
    app.addHook('onRequest', (_request, reply, done) => {
      reply.header('cache-control', 'no-store');
      done();
    });
    addSchemas(app);
    acquireRoute(app, parts);
    endingRoutes(app, parts);
    const scans = new Scans();
    lookingRoutes(app, parts, scans);
    batchRoute(app, parts);
    eventRoutes(app, parts, scans);
  },
};
