/** The native API. */
import type { Part } from '../http/service-parts.js';
import { acquireRoute } from './acquire.js';
import { batchRoute } from './batch.js';
import { eventRoutes } from './events.js';
import { historyRoutes } from './history.js';
import { readRoutes } from './read-routes.js';
import { renewReleaseEvictRoutes } from './renew-release-evict.js';
import { ScanQueue } from './scan-queue.js';
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
    renewReleaseEvictRoutes(app, parts);
    const scans = new ScanQueue();
    readRoutes(app, parts, scans);
    historyRoutes(app, parts);
    batchRoute(app, parts);
    eventRoutes(app, parts, scans);
  },
};
