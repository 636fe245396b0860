/** The OpenAPI document, made from the schemas that validate, and a page to browse it. */
import swagger from '@fastify/swagger';
import type { FastifyInstance, FastifySchema } from 'fastify';
import { PROBLEMS } from '../http/problem.js';
import { docsPage } from './docs-page.js';
import { problemSchema } from './schemas.js';

const ABOUT = `Locks over HTTP. A grant has a fencing token, an expiry, and a hold: a secret that renews and releases it,
through any process of the service. Contention is 423 with code "busy"; a store that does not answer is 503 with code
"unknown": then the lock may or may not be yours, and the same request may be sent again.`;

/** Only the log and the metrics have it. */
const NEVER_READ = 'client-gone';

/** Before the routes: only those that come after it are in the document. */
export async function describeApi(app: FastifyInstance): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Holdfast', version: '2', description: ABOUT },
      components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
      security: [{ bearer: [] }, {}],
    },
    transform: ({ schema, url }) => ({ schema: withProblems(schema), url }),
  });
  const description = madeOnce(() => JSON.stringify(app.swagger()));
  const page = madeOnce(() => docsPage(app.swagger()));
  app.route({
    method: 'GET',
    url: '/v2/openapi.json',
    config: { needs: 'public' },
    schema: { hide: true },
    handler: (_request, reply) => reply.type('application/json; charset=utf-8').send(description()),
  });
  app.route({
    method: 'GET',
    url: '/v2/docs',
    config: { needs: 'public' },
    schema: { hide: true },
    handler: (_request, reply) =>
      reply
        .type('text/html; charset=utf-8')
        .header('content-security-policy', "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'")
        .send(page()),
  });
}

/** When first asked for, and the same bytes for all: everybody may ask, and a thousand times at once. */
function madeOnce(make: () => string): () => Buffer {
  let made: Buffer | null = null;
  return () => {
    made ??= Buffer.from(make());
    return made;
  };
}

function withProblems(schema: FastifySchema | undefined): FastifySchema {
  const codes = Object.entries(PROBLEMS)
    .filter(([code]) => code !== NEVER_READ)
    .map(([code, { status }]) => `${code} (${status})`);
  const problem = {
    description: `A problem. Its code is one of: ${codes.join(', ')}.`,
    content: { 'application/problem+json': { schema: problemSchema } },
  };
  const given = (schema?.response ?? { 200: { description: 'Done.' } }) as Readonly<Record<string, unknown>>;
  return { ...schema, response: { ...given, default: problem } };
}
