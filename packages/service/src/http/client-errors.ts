/** Answers malformed, slow or oversized requests, which never reach a route, and ends their connection. */
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Logger } from 'pino';
import { newRequestId } from '../clock.js';
import { Problem } from './problem.js';

type ConnectionError = Error & { readonly code?: string };

export function onClientError(log: Logger): (error: ConnectionError, socket: Duplex) => void {
  return (error, socket) => {
    if (
      error.code === 'ECONNRESET' ||
      !socket.writable ||
      isShakingHands(socket) ||
      hasBegunToAnswer(socket)
    ) {
      socket.destroy();
      return;
    }
    const requestId = newRequestId();
    const problem = problemOf(error);
    const { status, code: outcome } = problem;
    log.info({ requestId, address: addressOf(socket), status, outcome, error: error.code }, 'no request');
    const body = JSON.stringify({ ...problem.body, requestId });
    const head = [
      `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status] ?? ''}`,
      'content-type: application/problem+json; charset=utf-8',
      `content-length: ${Buffer.byteLength(body)}`,
      `x-request-id: ${requestId}`,
      'connection: close',
    ];
    socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
  };
}

/** The address of the connection, because the header of a proxy was not read. */
function addressOf(socket: Duplex & { readonly remoteAddress?: string }): string | undefined {
  return socket.remoteAddress;
}

/** During the handshake nothing can be written, and an `end` that waits for a write never comes. */
function isShakingHands(socket: Duplex & { readonly secureConnecting?: boolean }): boolean {
  return socket.secureConnecting ?? false;
}

/** After the head of an answer, a second head would end up inside the first answer's body. */
function hasBegunToAnswer(
  socket: Duplex & { readonly _httpMessage?: { readonly headersSent?: boolean } },
): boolean {
  return socket._httpMessage?.headersSent ?? false;
}

function problemOf({ code }: ConnectionError): Problem {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new Problem('timeout', 'The request did not arrive in time. Send it again.');
  if (code === 'HPE_HEADER_OVERFLOW')
    return new Problem('too-large', 'The headers are larger than this service allows.');
  return new Problem('invalid-argument', 'This is not a valid HTTP request.');
}
