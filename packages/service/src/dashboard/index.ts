/**
 * The dashboard: a page of static files, read once at start, and what it has to know about who looks. Everything else it
 * asks of /v2, with the key of whoever logged in. The files hold nothing secret, so everybody may have them.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from '../http/problem.js';
import type { Part } from '../http/service-parts.js';

interface Asset {
  readonly type: string;
  readonly etag: string;
  readonly plain: Buffer;
  readonly packed: Buffer;
}

const FOLDER = new URL('../../dashboard/', import.meta.url);
const PAGE = 'index.html';
/** By name, so that nothing else that lies in the folder is ever served. */
const FILES = [
  PAGE,
  'dashboard.css',
  'icon.svg',
  'main.js',
  'board.js',
  'chart.js',
  'connection.js',
  'dom.js',
  'event-log.js',
  'evict.js',
  'lock-row.js',
  'lock-rows.js',
  'service.js',
  'stories.js',
  'time.js',
] as const;
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};
/** Names and metadata of locks come from anybody: whatever they hold, it is never run, and the key goes nowhere else. */
const HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  'cache-control': 'no-cache',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  vary: 'accept-encoding',
};

export const dashboard: Part = {
  name: 'dashboard',
  register(app) {
    const assets = new Map<string, Asset>(FILES.map((name) => [name, readAsset(name)]));
    app.route({
      method: 'GET',
      url: '/',
      config: { needs: 'public' },
      schema: { hide: true },
      handler: (request, reply) => send(request, reply, assets.get(PAGE)),
    });
    app.route<{ Params: { readonly file: string } }>({
      method: 'GET',
      url: '/dashboard/:file',
      config: { needs: 'public' },
      schema: { hide: true },
      handler: (request, reply) => send(request, reply, assets.get(request.params.file)),
    });
    sessionRoute(app);
  },
};

/** Who looks, and whether they may evict in a namespace. Only for what the page offers: the API decides. */
function sessionRoute(app: FastifyInstance): void {
  const namespace = { type: 'string', maxLength: 577 };
  app.route<{ Querystring: { readonly namespace?: string } }>({
    method: 'GET',
    url: '/dashboard/session',
    config: { needs: 'read', scope: () => null },
    schema: {
      hide: true,
      querystring: { type: 'object', additionalProperties: false, properties: { namespace } },
    },
    handler: (request, reply) => {
      reply.header('cache-control', 'no-store');
      return reply.send({
        principal: request.principal.id,
        admin: request.may('admin', request.query.namespace ?? ''),
      });
    },
  });
}

function readAsset(name: string): Asset {
  const plain = readFileSync(fileURLToPath(new URL(name, FOLDER)));
  const digest = createHash('sha256').update(plain).digest('base64url').slice(0, 22);
  // Weak: packed or not, it is the same file.
  return {
    type: TYPES[extname(name)] ?? 'application/octet-stream',
    etag: `W/"${digest}"`,
    plain,
    packed: gzipSync(plain, { level: 9 }),
  };
}

function send(request: FastifyRequest, reply: FastifyReply, asset: Asset | undefined): FastifyReply {
  if (!asset) throw new Problem('not-found', 'The dashboard has no such file.');
  const { type, etag, plain, packed } = asset;
  reply.headers({ ...HEADERS, etag });
  const known = request.headers['if-none-match']?.split(/\s*,\s*/) ?? [];
  if (known.includes(etag)) return reply.code(304).send();
  reply.type(type);
  const takesGzip = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?(?:,|\s|$))/.test(
    String(request.headers['accept-encoding'] ?? ''),
  );
  return takesGzip ? reply.header('content-encoding', 'gzip').send(packed) : reply.send(plain);
}
