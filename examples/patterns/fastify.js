// @ts-check
/**
 * Fastify: a route that only one instance may serve at a time. `POST /deploy/shop` runs `./deploy shop`; while it
 * runs, on whichever instance, everybody else is answered 409 with who runs it. Work whose lease is lost is stopped.
 * Fastify answers the requests in hand before its `onClose` hook closes the locks.
 *
 * For a fleet: HOLDFAST_STORE=redis://… (or another store that all instances reach) instead of a file of one machine.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import fastify from 'fastify';
import { createLocks, openStore } from 'holdfast';

const locks = createLocks(await openStore(process.env.HOLDFAST_STORE ?? 'sqlite:locks.db'));
const app = fastify({ logger: true });
const run = promisify(execFile);
app.post('/deploy/:site(^\\w+$)', async (request, reply) => {
  const { site } = /** @type {{ site: string }} */ (request.params);
  reply.header('connection', 'close'); // kept open, it would put off the end of Fastify by 72 s
  const done = await locks.tryWithLock(`deploy:${site}`, ({ signal }) => run('./deploy', [site], { signal }));
  return done.acquired ? done.value.stdout : reply.code(409).send({ holders: done.holders });
});
app.addHook('onClose', () => locks.close());
process.once('SIGTERM', () => app.close());
await app.listen({ port: Number(process.env.PORT ?? 3000) });
