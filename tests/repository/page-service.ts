/** A lock service for what the documents run, and a port for those that start their own. */
import { createServer } from 'node:net';
import { memoryStore } from 'holdfast/memory';
import { createService } from 'holdfast-service';

export interface PageService {
  readonly url: string;
  stop(): Promise<void>;
}

export async function startPageService(): Promise<PageService> {
  const store = memoryStore();
  const service = createService({ store });
  return {
    url: await service.listen(),
    async stop() {
      await service.close();
      await store.close();
    },
  };
}

/** Free at this moment, at least. */
export async function freePort(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (typeof address !== 'object' || address === null) throw new Error('There is no port.');
  return String(address.port);
}
