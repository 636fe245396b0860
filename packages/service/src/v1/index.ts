/** The contract of LockServiceCentral, for clients that come from there. Its locks are those of `/v2`. */
import type { Part } from '../http/service-parts.js';
import { refuseInItsWords } from './refusals.js';
import { lockRoutes } from './routes.js';

export const v1: Part = {
  name: 'v1',
  async register(app, parts) {
    await app.register(
      async (scope) => {
        scope.addHook('onRequest', ({ raw }, reply, done) => {
          reply.header('cache-control', 'no-store');
          // Clients never had to say that it is JSON: what they say instead is no reason to refuse it.
          if ('content-type' in raw.headers) raw.headers['content-type'] = 'application/json';
          done();
        });
        scope.removeAllContentTypeParsers();
        scope.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));
        refuseInItsWords(scope, parts.log);
        lockRoutes(scope, parts);
      },
      { prefix: '/v1' },
    );
  },
};
