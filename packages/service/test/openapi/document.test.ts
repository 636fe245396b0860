import { afterEach, describe, expect, it } from 'vitest';
import { clearScene, stage } from '../scene.js';

afterEach(clearScene);

interface Document {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

interface Operation {
  readonly operationId?: string;
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, unknown>> }>>;
}

function isStream({ responses }: Operation): boolean {
  return 'text/event-stream' in (responses[200]?.content ?? {});
}

describe('the OpenAPI document', () => {
  it('is 3.1, and has every route of /v2 with its problems', async () => {
    const { get } = await stage();
    const { status, body } = await get('/v2/openapi.json');
    expect(status).toBe(200);
    const { openapi, paths } = body as unknown as Document;
    expect(openapi).toBe('3.1.0');
    const operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ route: `${method} ${path}`, ...operation })),
    );
    expect(operations.map(({ route }) => route).sort()).toEqual([
      'get /v2/events',
      'get /v2/inboxes/{id}/events',
      'get /v2/locks',
      'get /v2/locks/{namespace}/{name}',
      'get /v2/probe',
      'post /v2/batch',
      'post /v2/locks/{namespace}/{name}/acquire',
      'post /v2/locks/{namespace}/{name}/evict',
      'post /v2/locks/{namespace}/{name}/release',
      'post /v2/locks/{namespace}/{name}/renew',
    ]);
    const ids = operations.map(({ operationId }) => operationId);
    expect(new Set(ids).size).toBe(operations.length);
    for (const { responses } of operations) {
      expect(Object.keys(responses.default?.content ?? {})).toEqual(['application/problem+json']);
    }
    expect(operations.filter(isStream).map(({ route }) => route)).toEqual([
      'get /v2/events',
      'get /v2/inboxes/{id}/events',
    ]);
    // All that it refers to is in it.
    expect(JSON.stringify(body)).not.toContain('"$ref"');
  });

  it('says of the body what validation enforces', async () => {
    const { get, post } = await stage();
    const { body } = await get('/v2/openapi.json');
    const text = JSON.stringify((body as unknown as Document).paths['/v2/locks/{namespace}/{name}/acquire']);
    for (const member of [
      'ttl',
      'wait',
      'owner',
      'metadata',
      'mode',
      'permits',
      'capacity',
      'hold',
      'minHold',
      'queue',
    ]) {
      expect(text).toContain(`"${member}":`);
    }
    expect(text).toContain('"required":["ttl"]');
    expect((await post('/v2/locks/a/b/acquire', {})).body.detail).toMatch(/ttl/);
  });

  it('can be browsed, without a script and without the network', async () => {
    const { get } = await stage();
    const { status, headers, text } = await get('/v2/docs');
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'/);
    expect(text).toContain('POST /v2/locks/{namespace}/{name}/acquire');
    expect(text).toContain('How long the grant lives without renewal.');
    expect(text).toContain('First <code>appeared</code> for every lock');
    expect(text).not.toMatch(/<script|https?:\/\//);
  });
});
