/** Objects over HTTP with the conditional writes of S3: `If-Match` and `If-None-Match: *`. As there, the ETag is a hash of the body. */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

interface StoredObject {
  readonly body: Buffer;
  readonly etag: string;
}

export interface ObjectServer {
  readonly url: string;
  stop(): Promise<void>;
}

function mayWrite({ headers }: IncomingMessage, found: StoredObject | undefined): boolean {
  if (headers['if-none-match'] === '*') return found === undefined;
  return headers['if-match'] === undefined || headers['if-match'] === found?.etag;
}

export async function startObjectServer(): Promise<ObjectServer> {
  const objects = new Map<string, StoredObject>();
  const server = createServer(async (request, response) => {
    const { method, url: path = '/' } = request;
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const found = objects.get(path);
    if (method === 'PUT') {
      if (!mayWrite(request, found)) return response.writeHead(412).end();
      const body = Buffer.concat(chunks);
      const etag = `"${createHash('md5').update(body).digest('hex')}"`;
      objects.set(path, { body, etag });
      return response.writeHead(200, { etag }).end();
    }
    if (!found) return response.writeHead(404).end();
    response.writeHead(200, { etag: found.etag });
    return response.end(method === 'HEAD' ? undefined : found.body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
