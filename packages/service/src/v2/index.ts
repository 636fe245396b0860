/** The native API. */
import { isEncoded } from '../http/percent-encoding.js';
import { Problem } from '../http/problem.js';
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
    app.addHook('onRequest', ({ url }, reply, done) => {
      reply.header('cache-control', 'no-store');
      const query = url.indexOf('?');
      if (query === -1 || isEncoded(url.slice(query))) done();
      else done(new Problem('invalid-argument', 'The query is not validly percent-encoded.'));
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
