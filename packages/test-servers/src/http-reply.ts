/** Replies of DynamoDB, forwarded or made here, and the changes that can be made to them. */
import { type IncomingHttpHeaders, request, type ServerResponse } from 'node:http';
import type { ErrorAnswer } from './http-fault-rules.js';

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface Forwarded {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Headers about a connection: this reply goes over another one. */
const OF_CONNECTION = new Set(['connection', 'keep-alive', 'transfer-encoding']);

function headersOf(headers: IncomingHttpHeaders): Readonly<Record<string, string>> {
  const kept = Object.entries(headers).filter(([name]) => !OF_CONNECTION.has(name));
  return Object.fromEntries(kept.map(([name, value]) => [name, String(value)]));
}

/** Over its own connection: the target could close an idle one at the moment it is used again. */
export function forward(
  target: { readonly host: string; readonly port: number },
  { method, path, headers, body }: Forwarded,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const options = {
      host: target.host,
      port: target.port,
      method,
      path,
      headers: headersOf(headers),
      agent: false,
    };
    const outgoing = request(options, (incoming) => {
      const pieces: Buffer[] = [];
      incoming.on('data', (piece: Buffer) => pieces.push(piece));
      incoming.on('error', reject);
      incoming.on('end', () =>
        resolve({
          status: incoming.statusCode ?? 500,
          headers: headersOf(incoming.headers),
          body: Buffer.concat(pieces).toString('utf8'),
        }),
      );
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

export function errorReply({ status, type, message }: ErrorAnswer, now: Date): Reply {
  return {
    status,
    headers: { 'content-type': 'application/x-amz-json-1.0', date: now.toUTCString() },
    body: JSON.stringify({ __type: `com.amazonaws.dynamodb.v20120810#${type}`, message }),
  };
}

/** The reply of an endpoint that does not know `ReturnValuesOnConditionCheckFailure`. */
export function withoutItem(reply: Reply): Reply {
  if (reply.status !== 400) return reply;
  const { Item: _, ...answer } = JSON.parse(reply.body) as {
    Item?: unknown;
    CancellationReasons?: readonly { readonly Item?: unknown }[];
  };
  const reasons = answer.CancellationReasons?.map(({ Item: __, ...reason }) => reason);
  const body = JSON.stringify({ ...answer, ...(reasons && { CancellationReasons: reasons }) });
  return { ...reply, body };
}

export function withDate(reply: Reply, change: (date: Date) => string | undefined): Reply {
  const { date, ...headers } = reply.headers;
  const changed = date === undefined ? undefined : change(new Date(date));
  return { ...reply, headers: changed === undefined ? headers : { ...headers, date: changed } };
}

/** Without the checksum, which is that of the unchanged body. */
export function send(response: ServerResponse, { status, headers, body }: Reply): void {
  if (response.destroyed) return;
  const { 'x-amz-crc32': _, ...kept } = headers;
  response.sendDate = false;
  response.writeHead(status, { ...kept, 'content-length': String(Buffer.byteLength(body)) });
  response.end(body);
}
