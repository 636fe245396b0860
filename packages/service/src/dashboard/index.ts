/**
 * The dashboard: static files, read once at the start, and a route about the user's rights. Everything else comes from /v2, with
 * the API key of the user. The files contain no secrets, so they are public.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from '../http/problem.js';
import type { Part, ServiceParts } from '../http/service-parts.js';
import { version } from '../http/version.js';
import { StoreLatency } from './store-latency.js';

interface Asset {
  readonly headers: Readonly<Record<string, string>>;
  readonly plain: Buffer;
  /** By encoding, compressed on first use. */
  readonly packed: Map<string, Buffer>;
}

const FOLDER = new URL('../../dashboard/', import.meta.url);
const PAGE = 'index.html';
/** Fetched when they are needed, not with the page. */
export const FETCHED_LATER = [
  'entries.js',
  'evict.js',
  'help.js',
  'history-page.js',
  'lock-details.js',
  'lock-page.js',
  'pages.css',
  'past-holds.js',
  'service-page.js',
];
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};
/** The better encoding first. Browsers accept `br` over TLS and from loopback. */
const PACKERS = [
  { encoding: 'br', pack: (plain: Buffer) => brotliCompressSync(plain) },
  { encoding: 'gzip', pack: (plain: Buffer) => gzipSync(plain, { level: 9 }) },
] as const;
/** Names and metadata of locks come from any client: they are never executed, and the API key is sent to no other site. */
const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
};

export const dashboard: Part = {
  name: 'dashboard',
  register(app, parts) {
    const page = readText(PAGE);
    // Only the files that the page names, not all files of the folder.
    const files = [...page.matchAll(/"dashboard\/([\w.-]+)"/g)].map(([, name = '']) => name);
    const assets = new Map([PAGE, ...files, ...FETCHED_LATER].map((name) => [name, readAsset(name)]));
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
    sessionRoute(app, parts);
  },
};

/**
 * The user, whether they may evict in a namespace, how often the service reads all locks, and the name of this service.
 * Only for display: the API decides about rights.
 */
function sessionRoute(app: FastifyInstance, { intervals, events, history }: ServiceParts): void {
  const latency = new StoreLatency(events);
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
        roundMs: intervals.roundMs,
        version: version(),
        service: history.service,
        storeMs: latency.median,
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
      // A weak tag, because packed and unpacked it is the same file.
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

/** Removes comments and indentation, which browsers do not need. The files have no start of a comment inside a text. */
function lean(text: string): string {
  const uncommented = text.replaceAll(/^\s*\/\/.*\n|(?:^\s*)?\/\*(?:[^*]|\*(?!\/))*\*\/\n?/gm, '');
  return uncommented.replaceAll(/^\s+/gm, '');
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
