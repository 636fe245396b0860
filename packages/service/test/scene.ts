/** A real service on a real port, and short ways to talk to it. */
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { Writable } from 'node:stream';
import type { Store } from 'holdfast';
import { memoryStore } from 'holdfast/memory';
import { sqliteStore } from 'holdfast/sqlite';
import { pino } from 'pino';
import { atTheEnd, freshFile } from '../../../tests/scene.js';
import { createService, type Service, type ServiceOptions } from '../src/index.js';
import { type Document, DocumentCheck } from './openapi/document-check.js';

export { atTheEnd, clearScene, freshFile, pause, until } from '../../../tests/scene.js';

/** Stores that need no server. */
export const STORES: Readonly<Record<string, () => Store>> = {
  memory: () => memoryStore(),
  // A service holds for clients that outlive it.
  SQLite: () => sqliteStore(freshFile(), { liveness: false }),
};

export interface Stage {
  readonly url: string;
  readonly store: Store;
  readonly service: Service;
  /** Every log line so far, as it was written. */
  readonly lines: string[];
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  get(path: string): Promise<Answer>;
  /** An acquire of `namespace/name` that has to be granted. */
  acquire(path: string, body?: object): Promise<Grant>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body as JSON. */
  readonly body: Body;
}

/** Whatever the service says; tests look into it. */
export type Body = Readonly<Record<string, unknown>>;

export interface Grant {
  readonly key: string;
  readonly hold: string;
  readonly token: number;
  readonly owner: string;
  readonly expiresAt: number;
  readonly remainingMs: number;
}

export async function stage(options: Partial<ServiceOptions> = {}): Promise<Stage> {
  const store = options.store ?? memoryStore();
  const lines: string[] = [];
  const sink = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(String(chunk));
      done();
    },
  });
  const log = pino({ level: 'trace' }, sink);
  const service = createService({ log, ...options, store });
  const answered: Answered[] = [];
  // After the test, so that it takes none of its time.
  atTheEnd(() => compareWithDocument(answered));
  atTheEnd(() => store.close());
  atTheEnd(() => service.close());
  const url = await service.listen();
  const call: Stage['call'] = async (method, path, body, headers = {}) => {
    const answer = await callAt(url, method, path, body, headers);
    answered.push({ method, path, answer });
    return answer;
  };
  return {
    url,
    store,
    service,
    lines,
    call,
    post: (path, body, headers) => call('POST', path, body ?? {}, headers),
    get: (path) => call('GET', path),
    async acquire(path, body = {}) {
      const answer = await call('POST', `/v2/locks/${path}/acquire`, { ttl: '30s', ...body });
      if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`);
      return answer.body as unknown as Grant;
    },
  };
}

interface Answered {
  readonly method: string;
  readonly path: string;
  readonly answer: Answer;
}

let documentCheck: Promise<DocumentCheck> | null = null;

/** Whatever a test is about, every answer that it got is one that the OpenAPI document describes. */
async function compareWithDocument(answered: readonly Answered[]): Promise<void> {
  if (answered.length === 0) return;
  documentCheck ??= makeDocumentCheck();
  const check = await documentCheck;
  const findings = answered.flatMap(({ method, path, answer: { status, headers, text, body } }) => {
    const contentType = headers.get('content-type') ?? '';
    return check.findings({
      method,
      path,
      status,
      contentType,
      body: /json/.test(contentType) ? body : text,
    });
  });
  if (findings.length > 0) throw new Error([...new Set(findings)].join('\n'));
}

async function makeDocumentCheck(): Promise<DocumentCheck> {
  const service = createService({ store: memoryStore() });
  try {
    const { body } = await callAt(await service.listen(), 'GET', '/v2/openapi.json');
    return new DocumentCheck(body as unknown as Document);
  } finally {
    await service.close();
  }
}

export async function callAt(
  url: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const init: RequestInit = { method, headers };
  if (body !== undefined) {
    init.body = typeof body === 'string' ? body : JSON.stringify(body);
    init.headers = { 'content-type': 'application/json', ...headers };
  }
  const response = await fetch(url + path, init);
  const text = await response.text();
  const isJson = /json/.test(response.headers.get('content-type') ?? '');
  const { status } = response;
  return { status, headers: response.headers, text, body: (isJson ? JSON.parse(text) : {}) as Body };
}

export interface Pending {
  readonly answer: Promise<{
    readonly status: number;
    readonly body: Body;
    readonly headers: IncomingHttpHeaders;
  }>;
  /** Ends the connection, as a client does that is killed. */
  leave(): void;
}

/** A request on a connection of its own, which can be cut. */
export function open(url: string, path: string, body: object, more: Record<string, string> = {}): Pending {
  const text = JSON.stringify(body);
  const headers = {
    ...{ 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) },
    ...more,
  };
  const request = httpRequest(url + path, { method: 'POST', agent: false, headers });
  const answer = new Promise<{ status: number; body: Body; headers: IncomingHttpHeaders }>(
    (resolve, reject) => {
      request.on('error', reject);
      request.on('response', (response) => {
        let read = '';
        response.on('data', (chunk) => {
          read += String(chunk);
        });
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            body: JSON.parse(read) as Body,
            headers: response.headers,
          }),
        );
      });
    },
  );
  // Whoever leaves awaits nothing.
  void Promise.allSettled([answer]);
  request.end(text);
  return { answer, leave: () => request.destroy() };
}

export interface Event {
  readonly event: string;
  readonly data: Body;
}

export interface EventStream {
  readonly status: number;
  readonly events: Event[];
  /** Everything that came, as it came. */
  readonly text: () => string;
  close(): void;
  closed: Promise<void>;
}

/** Reads server-sent events as they come. */
export async function listen(
  url: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<EventStream> {
  const leaving = new AbortController();
  atTheEnd(() => leaving.abort());
  const response = await fetch(url + path, { signal: leaving.signal, headers });
  const events: Event[] = [];
  let all = '';
  let rest = '';
  const read = async (): Promise<void> => {
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      const text = decoder.decode(chunk as Uint8Array, { stream: true });
      all += text;
      const blocks = (rest + text).split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) {
        const event = /^event: (.*)$/m.exec(block)?.[1];
        const data = /^data: (.*)$/m.exec(block)?.[1];
        if (event && data) events.push({ event, data: JSON.parse(data) as Body });
      }
    }
  };
  const closed = read().catch((error: unknown) => {
    if (!leaving.signal.aborted) throw error;
  });
  return { status: response.status, events, text: () => all, close: () => leaving.abort(), closed };
}
