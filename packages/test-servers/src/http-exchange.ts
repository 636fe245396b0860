/** One request through the HTTP proxy, with the fault that applies to it. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { sleep, wallMs } from './clock.js';
import type { Fault, HttpCall } from './http-fault-rules.js';
import { errorReply, forward, type Reply, send } from './http-reply.js';
import type { ProxyTarget } from './proxy.js';

export interface Decisions {
  /** The fault that applies to this request. */
  readonly meet: (call: HttpCall) => Fault;
  readonly change: (reply: Reply) => Reply;
  readonly onLoss: () => void;
  /** False once the proxy is stopped. */
  readonly isOpen: () => boolean;
}

async function textOf(incoming: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString('utf8');
}

function resetConnection(response: ServerResponse): void {
  response.socket?.resetAndDestroy();
}

type Exchange = (forwarded: () => Promise<Reply>) => Promise<Reply | 'reset'>;

/** Applies a fault to a request. */
function exchangeWith(fault: Fault, call: HttpCall): Exchange {
  switch (fault.kind) {
    case 'none':
      return (forwarded) => forwarded();
    case 'refuse':
      return async () => errorReply(fault.answer, new Date(wallMs()));
    case 'lose request':
      return async () => 'reset';
    case 'lose reply':
      return async (forwarded) => {
        await forwarded();
        return 'reset';
      };
    case 'delay request':
      return async (forwarded) => {
        await sleep(fault.ms);
        return forwarded();
      };
    case 'delay reply':
      return async (forwarded) => {
        const reply = await forwarded();
        await sleep(fault.ms);
        return reply;
      };
    case 'hold request':
      return async (forwarded) => {
        await fault.gate.pass(call);
        return forwarded();
      };
    case 'hold reply':
      return async (forwarded) => {
        const reply = await forwarded();
        await fault.gate.pass(call);
        return reply;
      };
  }
}

export function exchangeOver(target: ProxyTarget, decisions: Decisions): RequestListener {
  const handle = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = 'POST', url: path = '/', headers } = incoming;
    const body = await textOf(incoming);
    const call = { operation: String(headers['x-amz-target'] ?? '').replace(/^.*\./, ''), body };
    const fault = decisions.meet(call);
    const forwarded = async (): Promise<Reply> => {
      if (!decisions.isOpen()) throw new Error('the proxy was stopped while it held this request');
      return forward(target, { method, path, headers, body });
    };
    const outcome = await exchangeWith(fault, call)(forwarded);
    if (fault.kind === 'lose reply') decisions.onLoss();
    if (outcome === 'reset') resetConnection(response);
    else send(response, decisions.change(outcome));
  };
  return (incoming, response) => {
    // An unreachable target looks like a broken connection.
    handle(incoming, response).catch(() => resetConnection(response));
  };
}
