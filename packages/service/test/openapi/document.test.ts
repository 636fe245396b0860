import { memoryStore } from 'holdfast/memory';
import { afterEach, describe, expect, it } from 'vitest';
import { createAuth } from '../../src/auth/index.js';
import { PROBLEMS } from '../../src/http/problem.js';
import { createService } from '../../src/index.js';
import { keyFile } from '../auth/issuer.js';
import { atTheEnd, clearScene, stage } from '../scene.js';
import type { Document, Operation, Schema } from './document-check.js';

afterEach(clearScene);

async function theDocument(): Promise<Document> {
  const { get } = await stage();
  const { status, body } = await get('/v2/openapi.json');
  expect(status).toBe(200);
  return body as unknown as Document;
}

/** Every object in the document, with where it is. */
function* everywhere(value: unknown, path = ''): Generator<readonly [string, Schema]> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield [path, value as Schema];
  for (const [name, member] of Object.entries(value)) yield* everywhere(member, `${path}/${name}`);
}

function isStream({ responses }: Operation): boolean {
  return 'text/event-stream' in (responses[200]?.content ?? {});
}

describe('the OpenAPI document', () => {
  it('is 3.1, and has every route of /v1 and /v2', async () => {
    const { openapi, paths } = await theDocument();
    expect(openapi).toBe('3.1.0');
    const operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ route: `${method} ${path}`, ...operation })),
    );
    const routes = operations.map(({ route }) => route);
    expect(routes.filter((route) => /\/v[12]\//.test(route)).sort()).toEqual([
      'get /v1/{namespace}/lock/{lockName}',
      'get /v2/events',
      'get /v2/history',
      'get /v2/history/summary',
      'get /v2/inboxes/{id}/events',
      'get /v2/locks',
      'get /v2/locks/{namespace}/{name}',
      'get /v2/probe',
      'post /v1/{namespace}/lock/{lockName}/acquire',
      'post /v1/{namespace}/lock/{lockName}/release',
      'post /v1/{namespace}/lock/{lockName}/renew',
      'post /v2/batch',
      'post /v2/locks/{namespace}/{name}/acquire',
      'post /v2/locks/{namespace}/{name}/evict',
      'post /v2/locks/{namespace}/{name}/release',
      'post /v2/locks/{namespace}/{name}/renew',
    ]);
    const ids = operations.map(({ operationId }) => operationId);
    expect(new Set(ids).size).toBe(operations.length);
    expect(operations.filter(isStream).map(({ route }) => route)).toEqual([
      'get /v2/events',
      'get /v2/inboxes/{id}/events',
    ]);
  });

  it('leaves out no route of /v1 and /v2 but its own', async () => {
    const service = createService({ store: memoryStore() });
    atTheEnd(() => service.close());
    const routes: string[] = [];
    service.app.addHook('onRoute', ({ method, url }) => {
      for (const one of [method].flat())
        routes.push(`${one.toLowerCase()} ${url.replaceAll(/:(\w+)/g, '{$1}')}`);
    });
    await service.app.ready();
    const { paths } = await theDocument();
    const left = routes.filter((route) => {
      const [method = '', path = ''] = route.split(' ');
      return /^\/v[12]\//.test(path) && method !== 'head' && paths[path]?.[method] === undefined;
    });
    expect(left.sort()).toEqual(['get /v2/docs', 'get /v2/openapi.json']);
  });

  it('gives every integer a width: 64 bits for tokens and times', async () => {
    const document = await theDocument();
    const integers = [...everywhere(document)].filter(([, { type }]) => [type].flat().includes('integer'));
    const formats = integers.map(([path, { format }]) => [path, format] as const);
    expect(formats.filter(([, format]) => format !== 'int32' && format !== 'int64')).toEqual([]);
    const large = /\/(?:token|tokenLast|upToToken|acquiredAt|expiresAt|now|since|expiry|\w+Ms)$/;
    const narrow = formats.filter(([path, format]) => large.test(path) && format !== 'int64');
    expect(narrow).toEqual([]);
  });

  it('has a named schema for every body, and refers to it', async () => {
    const { paths, components } = await theDocument();
    const bodies = [...everywhere(paths)].filter(([path]) =>
      /\/application\/(?:problem\+)?json\/schema$/.test(path.replaceAll('~1', '/')),
    );
    expect(bodies.length).toBeGreaterThan(100);
    const unnamed = bodies.filter(([path, { $ref }]) => $ref === undefined && !/health|readyz/.test(path));
    expect(unnamed).toEqual([]);
    for (const name of [
      'Grant',
      'Lock',
      'Holder',
      'Waiter',
      'Problem',
      'BusyProblem',
      'LockEvent',
      'V1Lease',
    ]) {
      expect(components.schemas).toHaveProperty(name);
    }
  });

  it('lists every code of a problem, and what a 423 says besides', async () => {
    const { paths, components } = await theDocument();
    const codes = Object.keys(PROBLEMS).filter((code) => code !== 'client-gone');
    expect(components.schemas.Problem).toHaveProperty('properties.code.enum', codes);
    const taken = paths['/v2/locks/{namespace}/{name}/acquire']?.post?.responses[423];
    const { schema } = taken?.content['application/problem+json'] ?? {};
    expect(schema).toEqual({ $ref: '#/components/schemas/BusyProblem' });
    expect(components.schemas.BusyProblem).toMatchObject({
      required: expect.arrayContaining(['code', 'holders', 'freeInMs', 'now']),
      properties: {
        code: { const: 'busy' },
        holders: { type: 'array', items: { $ref: '#/components/schemas/Holder' } },
        freeInMs: { type: 'integer', format: 'int64' },
      },
    });
  });

  it('asks for a bearer where the service does', async () => {
    const open = await theDocument();
    expect(open).toHaveProperty('security', [{ bearer: [] }, {}]);
    const { path } = await keyFile({ ada: ['read:*'] });
    const { get } = await stage({ auth: createAuth({ apiKeys: path }) });
    const { body } = await get('/v2/openapi.json');
    expect(body).toHaveProperty('security', [{ bearer: [] }]);
    expect(body).toHaveProperty('components.securitySchemes.bearer.scheme', 'bearer');
    expect(open.paths['/healthz']?.get).toHaveProperty('security', []);
    expect(open.paths['/v2/locks']?.get).not.toHaveProperty('security');
  });

  it('says of the body what validation enforces', async () => {
    const { post } = await stage();
    const { components } = await theDocument();
    const { required, properties } = components.schemas.AcquireRequest as {
      readonly required: readonly string[];
      readonly properties: Schema;
    };
    expect(required).toEqual(['ttl']);
    expect(Object.keys(properties)).toEqual([
      ...['ttl', 'wait', 'owner', 'metadata', 'mode', 'permits', 'capacity', 'hold', 'minHold', 'queue'],
    ]);
    expect((await post('/v2/locks/a/b/acquire', {})).body.detail).toMatch(/ttl/);
  });

  it('can be browsed, without a script and without the network', async () => {
    const { get } = await stage();
    const { status, headers, text } = await get('/v2/docs');
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'/);
    expect(text).toContain('POST /v2/locks/{namespace}/{name}/acquire');
    expect(text).toContain('How long the lock lives without renewal.');
    expect(text).toContain('First <code>appeared</code> for every lock');
    expect(text).not.toMatch(/<script|https?:\/\//);
    // Every link leads to a schema on the page.
    const links = [...text.matchAll(/href="#(\w+)"/g)].map(([, name]) => name);
    expect(links.length).toBeGreaterThan(0);
    for (const name of new Set(links)) expect(text).toContain(`id="${name}"`);
  });
});
