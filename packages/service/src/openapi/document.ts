/**
 * The OpenAPI document, made from the schemas of the routes:
 * 1. Every route with an `operationId` is an operation. HEAD is left out: it is GET without a body.
 * 2. Schemas added with `app.addSchema` are components. `Lock#` becomes `#/components/schemas/Lock`.
 * 3. `params`, `querystring` and `headers` become parameters; `problems` become answers, one per status.
 */
import type { FastifyInstance, RouteOptions } from 'fastify';
import { problemResponses, problemSchema } from './problem-schema.js';
import { type Schema, TAGS } from './schema.js';

const ABOUT = `Locks over HTTP. Acquiring a lock gives a grant: a fencing token, an expiry, and a hold. The hold is a
secret: with it, the lock can be renewed and released through any process of the service. A lock that is held by somebody
else is a 423 with the code \`busy\`. A store that did not answer is a 503 with the code \`unknown\`: the lock may have been
granted or not, and the same request with the same hold can be sent again.`;

const BEARER = {
  type: 'http',
  scheme: 'bearer',
  description: 'An API key of this service, or a JWT of the issuer that it trusts.',
};

type Entries = Readonly<Record<string, Schema>>;

interface Route {
  readonly options: RouteOptions;
  readonly schemas: () => Entries;
}

export class ApiDocument {
  readonly #routes: Route[] = [];
  readonly #hasAuth: boolean;

  /** Only the routes that are registered afterwards are in the document. */
  constructor(app: FastifyInstance, hasAuth: boolean) {
    this.#hasAuth = hasAuth;
    app.addSchema(problemSchema);
    const routes = this.#routes;
    app.addHook('onRoute', function collect(this: FastifyInstance, options) {
      routes.push({ options, schemas: () => this.getSchemas() as Entries });
    });
  }

  toJSON(): Schema {
    const documented = this.#routes.filter(({ options }) => options.schema?.operationId !== undefined);
    const components = Object.assign({}, ...documented.map(({ schemas }) => schemas())) as Entries;
    const paths: Record<string, Record<string, Schema>> = {};
    for (const { options } of documented) {
      const path = options.url.replaceAll(/:(\w+)/g, '{$1}');
      const methods = [options.method].flat().filter((method) => method !== 'HEAD');
      for (const method of methods) {
        paths[path] = { ...paths[path], [method.toLowerCase()]: operationOf(options) };
      }
    }
    return published(
      {
        openapi: '3.1.0',
        info: {
          title: 'Holdfast',
          version: '2',
          description: ABOUT,
          license: { name: 'MIT', identifier: 'MIT' },
        },
        servers: [{ url: '/', description: 'The service that this document comes from.' }],
        security: this.#hasAuth ? [{ bearer: [] }] : [{ bearer: [] }, {}],
        tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
        paths,
        components: { securitySchemes: { bearer: BEARER }, schemas: components },
      },
      components,
    ) as Schema;
  }
}

function operationOf({ schema = {}, config }: RouteOptions): Schema {
  const { operationId, summary, description, tags, body, problems = [] } = schema;
  const parameters = [
    ...parametersOf('path', schema.params),
    ...parametersOf('query', schema.querystring),
    ...parametersOf('header', schema.headers),
  ];
  return {
    operationId,
    summary,
    ...(description === undefined ? {} : { description }),
    tags,
    ...(config?.needs === 'public' ? { security: [] } : {}),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(body ? { requestBody: { required: true, content: { 'application/json': { schema: body } } } } : {}),
    responses: { ...answersOf(schema.response), ...problemResponses(problems) },
  };
}

function parametersOf(place: 'path' | 'query' | 'header', schema: unknown): readonly Schema[] {
  const { properties = {}, required = [] } = (schema ?? {}) as {
    readonly properties?: Entries;
    readonly required?: readonly string[];
  };
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    name,
    in: place,
    required: required.includes(name),
    ...(description === undefined ? {} : { description }),
    schema: rest,
  }));
}

/** A route gives the schema of its answer, or the whole response if that is not JSON or needs headers. */
function answersOf(response: unknown): Entries {
  const answers = Object.entries((response ?? {}) as Entries).map(([status, schema]) => {
    if ('content' in schema) return [status, schema];
    return [status, { description: 'Done.', content: { 'application/json': { schema } } }];
  });
  return Object.fromEntries(answers) as Entries;
}

/** Rewrites the parts that only the framework understands: references, ids, and discriminators, which need a mapping. */
function published(value: unknown, components: Entries): unknown {
  if (Array.isArray(value)) return value.map((item) => published(item, components));
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).flatMap(([name, member]: [string, unknown]) => {
    if (name === '$id') return [];
    if (name === '$ref') return [[name, referenceOf(String(member))]];
    if (name === 'discriminator') return [[name, mappedBy(value as Schema, components)]];
    return [[name, published(member, components)]];
  });
  return Object.fromEntries(members) as unknown;
}

function referenceOf(name: string): string {
  return `#/components/schemas/${name.replace('#', '')}`;
}

/** Without a mapping the value of the member would have to be the name of the schema. */
function mappedBy(schema: Schema, components: Entries): Schema {
  const { propertyName } = schema.discriminator as { readonly propertyName: string };
  const choices = (schema.oneOf as readonly { readonly $ref: string }[]).map(({ $ref }) => {
    const members = components[$ref.replace('#', '')]?.properties as Entries | undefined;
    return [String(members?.[propertyName]?.const), referenceOf($ref)];
  });
  return { propertyName, mapping: Object.fromEntries(choices) as Schema };
}
