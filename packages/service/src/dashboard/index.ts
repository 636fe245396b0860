/**
 * The dashboard: a page of static files, read once at start, and what it has to know about who looks. Everything else it
 * asks of /v2, with the key of whoever logged in. The files hold nothing secret, so everybody may have them.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Pace } from '../http/pace.js';
import { Problem } from '../http/problem.js';
import type { Part } from '../http/service-parts.js';

interface Asset {
  readonly headers: Readonly<Record<string, string>>;
  readonly plain: Buffer;
  /** By encoding, made when first asked for. */
  readonly packed: Map<string, Buffer>;
}

const FOLDER = new URL('../../dashboard/', import.meta.url);
const PAGE = 'index.html';
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};
/** The better one first. Browsers take `br` over TLS and from loopback. */
const PACKERS = [
  { encoding: 'br', pack: (plain: Buffer) => brotliCompressSync(plain) },
  { encoding: 'gzip', pack: (plain: Buffer) => gzipSync(plain, { level: 9 }) },
] as const;
/** Names and metadata of locks come from anybody: whatever they hold, it is never run, and the key goes nowhere else. */
const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
};

export const dashboard: Part = {
  name: 'dashboard',
  register(app, { pace }) {
    const page = readText(PAGE);
    // What the page names, and nothing else that lies in the folder.
    const files = [...page.matchAll(/"dashboard\/([\w.-]+)"/g)].map(([, name = '']) => name);
    const assets = new Map([PAGE, ...files].map((name) => [name, readAsset(name)]));
    app.route({
      method: 'GET',
      url: '/',
      config: { needs: 'public' },
      handler: (request, reply) => send(request, reply, assets.get(PAGE)),
    });
    app.route<{ Params: { readonly file: string } }>({
      method: 'GET',
      url: '/dashboard/:file',
      config: { needs: 'public' },
      handler: (request, reply) => send(request, reply, assets.get(request.params.file)),
    });
    sessionRoute(app, pace);
  },
};

/**
 * Who looks, whether they may evict in a namespace, and how often the service looks at all locks. Only for what the page
 * offers and says: the API decides.
 */
function sessionRoute(app: FastifyInstance, { roundMs }: Pace): void {
  const namespace = { type: 'string', maxLength: 577 };
  app.route<{ Querystring: { readonly namespace?: string } }>({
    method: 'GET',
    url: '/dashboard/session',
    config: { needs: 'read', scope: () => null },
    schema: { querystring: { type: 'object', additionalProperties: false, properties: { namespace } } },
    handler: (request, reply) => {
      reply.header('cache-control', 'no-store');
      return reply.send({
        principal: request.principal.id,
        admin: request.may('admin', request.query.namespace ?? ''),
        roundMs,
      });
    },
  });
}

function readText(name: string): string {
  return readFileSync(new URL(name, FOLDER), 'utf8');
}

function readAsset(name: string): Asset {
  const plain = Buffer.from(lean(readText(name)));
  const digest = createHash('sha256').update(plain).digest('base64url').slice(0, 22);
  return {
    headers: {
      'content-type': TYPES[extname(name)] ?? 'application/octet-stream',
      // Weak: packed or not, it is the same file.
      etag: `W/"${digest}"`,
      'cache-control': 'no-cache',
      'cross-origin-resource-policy': 'same-origin',
      vary: 'accept-encoding',
      ...(name === PAGE ? PAGE_HEADERS : {}),
    },
    plain,
    packed: new Map(),
  };
}

/** Without comments that have lines of their own, and without indentation: browsers need neither. */
function lean(text: string): string {
  return text.replaceAll(/^\s*(?:\/\/.*|\/\*(?:[^*]|\*(?!\/))*\*\/)\n/gm, '').replaceAll(/^\s+/gm, '');
}

function send(request: FastifyRequest, reply: FastifyReply, asset: Asset | undefined): FastifyReply {
  if (!asset) throw new Problem('not-found', 'The dashboard has no such file.');
  const { headers, plain, packed } = asset;
  reply.headers(headers);
  const known = request.headers['if-none-match']?.split(/\s*,\s*/) ?? [];
  if (known.includes(headers.etag ?? '')) return reply.code(304).send();
  const accepted = String(request.headers['accept-encoding'] ?? '');
  const packer = PACKERS.find(({ encoding }) => takes(accepted, encoding));
  if (!packer) return reply.send(plain);
  const { encoding, pack } = packer;
  const body = packed.get(encoding) ?? pack(plain);
  packed.set(encoding, body);
  return reply.header('content-encoding', encoding).send(body);
}

function takes(accepted: string, encoding: string): boolean {
  const asked = accepted.split(',').find((one) => one.trim().split(/[;\s]/)[0] === encoding);
  return asked !== undefined && !/;\s*q=0(?:\.0*)?\s*$/.test(asked);
}
