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

/** The reply to a request to which this fault applies. */
async function exchange(
  fault: Fault,
  call: HttpCall,
  forwarded: () => Promise<Reply>,
): Promise<Reply | 'reset'> {
  switch (fault.kind) {
    case 'none':
      return forwarded();
    case 'refuse':
      return errorReply(fault.answer, new Date(wallMs()));
    case 'lose request':
      return 'reset';
    case 'lose reply':
      await forwarded();
      return 'reset';
    case 'delay request':
      await sleep(fault.ms);
      return forwarded();
    case 'delay reply': {
      const reply = await forwarded();
      await sleep(fault.ms);
      return reply;
    }
    case 'hold request':
      await fault.gate.pass(call);
      return forwarded();
    case 'hold reply': {
      const reply = await forwarded();
      await fault.gate.pass(call);
      return reply;
    }
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
    const outcome = await exchange(fault, call, forwarded);
    if (fault.kind === 'lose reply') decisions.onLoss();
    if (outcome === 'reset') resetConnection(response);
    else send(response, decisions.change(outcome));
  };
  return (incoming, response) => {
    // An unreachable target looks like a broken connection.
    handle(incoming, response).catch(() => resetConnection(response));
  };
}
