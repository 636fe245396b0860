/** The OpenAPI document at `/v2/openapi.json`, and as a page at `/v2/docs`. */
import type { FastifyInstance } from 'fastify';
import type { Part } from '../http/service-parts.js';
import { docsPage } from './docs-page.js';
import { ApiDocument } from './document.js';

/** Make it before the parts whose routes are to be in the document are registered. */
export function openapi(app: FastifyInstance, hasAuth: boolean): Part {
  const document = new ApiDocument(app, hasAuth);
  return { name: 'openapi', register: (scope) => documentRoutes(scope, document) };
}

function documentRoutes(app: FastifyInstance, document: ApiDocument): void {
  const json = madeOnce(() => JSON.stringify(document));
  const page = madeOnce(() => docsPage(document.toJSON()));
  app.route({
    method: 'GET',
    url: '/v2/openapi.json',
    config: { needs: 'public' },
    handler: (_request, reply) =>
      reply
        .headers({ 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' })
        .send(json()),
  });
  app.route({
    method: 'GET',
    url: '/v2/docs',
    config: { needs: 'public' },
    handler: (_request, reply) =>
      reply
        .headers({
          'content-type': 'text/html; charset=utf-8',
          'cache-control': 'no-store',
          'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'",
        })
        .send(page()),
  });
}

/** Makes a text at the first request and keeps it, because anybody may request it at any rate. */
function madeOnce(make: () => string): () => Buffer {
  let made: Buffer | null = null;
  return () => {
    made ??= Buffer.from(make());
    return made;
  };
}
