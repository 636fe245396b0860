/**
 * A lock service in a process of its own. Arguments: `memory` or the path of an SQLite file, and a port (0 for any).
 * Says where it listens. Told `cut`, it breaks all streams of events, and says how many there were. It ends when its
 * standard input does.
 */
import { createInterface } from 'node:readline';
import { memoryStore } from 'holdfast/memory';
import { sqliteStore } from 'holdfast/sqlite';
import { createService } from 'holdfast-service';

const [, , where = 'memory', port = '0'] = process.argv;
const store = where === 'memory' ? memoryStore() : sqliteStore(where, { liveness: false });
const service = createService({ store });

/** @type {Set<import('node:net').Socket>} */
const streams = new Set();
service.app.addHook('onRequest', (request, _reply, done) => {
  const { socket } = request.raw;
  if (request.url.endsWith('/events')) {
    streams.add(socket);
    socket.once('close', () => streams.delete(socket));
  }
  done();
});

console.log(await service.listen({ port: Number(port) }));
createInterface({ input: process.stdin })
  .on('line', () => {
    console.log(String(streams.size));
    for (const socket of streams) socket.destroy();
  })
  .on('close', async () => {
    await service.close();
    await store.close();
    process.exit(0);
  });
