/** The contract of LockServiceCentral, for its clients. The locks are those of `/v2`. */
import { isEncoded } from '../http/percent-encoding.js';
import type { Part } from '../http/service-parts.js';
import { refuseInItsWords } from './contract.js';
import { lockRoutes } from './routes.js';
import { actuatorDescription } from './schemas.js';

const PREFIX = '/v1';

/** Escapes an invalid percent-encoding, so that the route refuses the name in the form of this contract. */
export function withReadableNames(url: string): string {
  const [path = ''] = url.split('?', 1);
  return isEncoded(path) ? url : path.replaceAll('%', '%25') + url.slice(path.length);
}

export const v1: Part = {
  name: 'v1',
  async register(app, parts) {
    app.route({
      method: ['GET', 'HEAD'],
      url: '/actuator/health',
      config: { needs: 'public' },
      schema: actuatorDescription,
      handler: async () => ({ status: 'UP' }),
    });
    await app.register(
      async (scope) => {
        scope.addHook('onRequest', ({ raw }, reply, done) => {
          reply.header('cache-control', 'no-store');
          // Clients of this contract may send any content type.
          if ('content-type' in raw.headers) raw.headers['content-type'] = 'application/json';
          done();
        });
        scope.removeAllContentTypeParsers();
        scope.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));
        // The schemas are only for the OpenAPI document: the contract checks by itself.
        scope.setValidatorCompiler(() => () => true);
        scope.setSerializerCompiler(() => JSON.stringify);
        refuseInItsWords(scope, parts.log);
        lockRoutes(scope, parts);
      },
      { prefix: PREFIX },
    );
  },
};
