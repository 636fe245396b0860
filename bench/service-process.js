/**
 * What answers HTTP in a process of its own: the service, on its memory store or on that of a URL; fastify routes that answer
 * the same JSON with the same logger, schemas and auth hook; or bare fastify routes with none of that. Says where to its
 * parent, and ends with it.
 */
import { randomUUID } from 'node:crypto';
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fastify from 'fastify';
import { openStore } from 'holdfast';
import { memoryStore } from 'holdfast/memory';
import { createApiKey, createAuth, createService } from 'holdfast-service';

/** The service's own, so that both check and write the same. */
const SERVICE = new URL('../packages/service/dist', import.meta.url).href;
const V2 = `${SERVICE}/v2`;
const UNLIMITED = { requestsPerSecond: 1e9, requestBurst: 1e9 };

/** @param {string} folder */
async function authOf(folder) {
  const path = join(folder, 'keys.json');
  const { text } = await createApiKey({ path, by: 'benchmark' }, { name: 'benchmark', rights: ['lock:*'] });
  return { key: text, auth: createAuth({ apiKeys: path, limits: UNLIMITED }) };
}

/** As much is logged as the service logs, by its own output; both throw it away at the last moment. */
const { openLog } = await import(`${SERVICE}/service-log.js`);
/** @type {import('pino').Logger} */
const log = openLog('info', createWriteStream('/dev/null')).log;

/** @param {import('holdfast-service').Authenticator} auth @param {string} url */
async function startService(auth, url) {
  const service = createService({ store: url === '' ? memoryStore() : await openStore(url), auth, log });
  return service.listen({ host: '127.0.0.1', port: 0 });
}

/** @param {import('holdfast-service').Authenticator} auth */
async function startWithAccess(auth) {
  const { addSchemas } = await import(`${V2}/schemas.js`);
  const { pathSchema } = await import(`${V2}/request-schemas.js`);
  const app = fastify({ genReqId: () => randomUUID() });
  addSchemas(app);
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id);
    reply.header('x-content-type-options', 'nosniff');
    // Auth notes here which key it was, for the log.
    const principal = await auth.authenticate(Object.assign(request, { note: {} }));
    const { namespace } = /** @type {{ namespace: string }} */ (request.params);
    if (!principal.may('lock', namespace)) throw new Error('No right.');
  });
  app.addHook('onResponse', ({ id, method, routeOptions, params }, { statusCode, elapsedTime }, done) => {
    const { namespace, name } = /** @type {{ namespace: string, name: string }} */ (params);
    const what = { requestId: id, method, route: routeOptions.url, status: statusCode };
    const who = { principal: 'key:benchmark', key: `${namespace}/${name}`, outcome: 'granted' };
    log.info({ ...what, ...who, durationMs: elapsedTime, waitedMs: elapsedTime }, 'request');
    done();
  });
  const schemaOf = (/** @type {string} */ body, /** @type {string} */ answer) => {
    return { schema: { params: pathSchema, body: { $ref: body }, response: { 200: { $ref: answer } } } };
  };
  return listenWith(app, schemaOf('AcquireRequest#', 'Grant#'), schemaOf('ReleaseRequest#', 'Released#'));
}

/** Both routes, which keep no lock. @param {import('fastify').FastifyInstance} app @param {object} [acquire] @param {object} [release] */
function listenWith(app, acquire = {}, release = {}) {
  const path = '/v2/locks/:namespace/:name';
  let token = 0;
  app.post(`${path}/acquire`, acquire, async (request) => {
    const { namespace, name } = /** @type {{ namespace: string, name: string }} */ (request.params);
    const hold = `${randomUUID()}.1`;
    const now = Date.now();
    const times = { acquiredAt: now, expiresAt: now + 30_000, now, remainingMs: 30_000 };
    return { key: `${namespace}/${name}`, hold, token: ++token, owner: 'benchmark', ...times };
  });
  app.post(`${path}/release`, release, async (request) => {
    const { namespace, name } = /** @type {{ namespace: string, name: string }} */ (request.params);
    return { key: `${namespace}/${name}`, released: true, held: true, now: Date.now() };
  });
  return app.listen({ host: '127.0.0.1', port: 0 });
}

/** @param {string} kind @param {string} url */
async function start(kind, url) {
  if (kind === 'bare') return listenWith(fastify());
  return kind === 'access' ? startWithAccess(auth) : startService(auth, url);
}

const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-service-'));
const { key, auth } = await authOf(folder);
const url = await start(process.argv[2] ?? '', process.argv[3] ?? '');
process.on('disconnect', () => {
  rmSync(folder, { recursive: true, force: true });
  process.exit(0);
});
process.send?.({ url, key });
