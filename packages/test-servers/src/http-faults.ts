/**
 * An HTTP proxy in front of DynamoDB that refuses, loses, delays or holds requests and replies. Where several faults match
 * a request, the first one given applies. Faults below HTTP are made by `startProxy`, in front of this proxy or behind it.
 */
import { createServer } from 'node:http';
import { exchangeOver } from './http-exchange.js';
import {
  type ErrorAnswer,
  type HttpCall,
  makeGate,
  makeRules,
  type Rules,
  type WhichCalls,
} from './http-fault-rules.js';
import { withDate, withoutItem } from './http-reply.js';
import { listenSomewhere } from './listen.js';
import type { ProxyTarget } from './proxy.js';

export interface HeldCall {
  /** Resolves with the next request that matches. */
  readonly arrived: Promise<HttpCall>;
  release(): void;
}

interface FaultControls {
  /** 400 ProvisionedThroughputExceededException; the request is not forwarded. */
  throttle(which?: WhichCalls): void;
  /** 500 InternalServerError; the request is not forwarded. */
  fail(which?: WhichCalls): void;
  /** Any other error of the service. */
  refuse(answer: ErrorAnswer, which?: WhichCalls): void;
  /** The connection is reset; the request is not forwarded. */
  loseRequests(which?: WhichCalls): void;
  /** The request is forwarded; its reply is dropped and the connection reset. */
  loseReplies(which?: WhichCalls): void;
  /** The request is forwarded this much later, even if the client has given up by then. */
  delayRequests(ms: number, which?: WhichCalls): void;
  /** The request is forwarded at once; its reply arrives this much later. */
  delayReplies(ms: number, which?: WhichCalls): void;
  /** Holds the next request until `release`. It is then forwarded even if its client has given up. */
  holdRequest(which?: Omit<WhichCalls, 'times'>): HeldCall;
  /** Holds the reply to the next request. */
  holdReply(which?: Omit<WhichCalls, 'times'>): HeldCall;
}

export interface HttpFaults extends FaultControls {
  readonly host: string;
  readonly port: number;
  /** The endpoint for the SDK. */
  readonly url: string;
  /** All requests so far, including those with a fault. */
  readonly calls: readonly HttpCall[];
  /** Replies lost so far. */
  readonly lost: number;
  count(operation?: string): number;
  /** Removes all faults and releases held requests. */
  pass(): void;
  /** Changes the header `Date` of every reply from now on; undefined removes it. `pass` does not undo this. */
  rewriteDate(change: (date: Date) => string | undefined): void;
  /** Removes the item that a failed condition returns. `pass` does not undo this. */
  stripItems(strip?: boolean): void;
  stop(): Promise<void>;
}

const THROTTLED: ErrorAnswer = {
  status: 400,
  type: 'ProvisionedThroughputExceededException',
  message: 'The level of configured provisioned throughput for the table was exceeded.',
};
const FAILED: ErrorAnswer = { status: 500, type: 'InternalServerError', message: 'Internal server error' };

function faultControls(rules: Rules): FaultControls {
  const hold = (kind: 'hold request' | 'hold reply', which: WhichCalls): HeldCall => {
    const gate = makeGate();
    rules.add({ kind, gate }, { ...which, times: 1 });
    return { arrived: gate.arrived, release: gate.release };
  };
  return {
    throttle: (which = {}) => rules.add({ kind: 'refuse', answer: THROTTLED }, which),
    fail: (which = {}) => rules.add({ kind: 'refuse', answer: FAILED }, which),
    refuse: (answer, which = {}) => rules.add({ kind: 'refuse', answer }, which),
    loseRequests: (which = {}) => rules.add({ kind: 'lose request' }, which),
    loseReplies: (which = {}) => rules.add({ kind: 'lose reply' }, which),
    delayRequests: (ms, which = {}) => rules.add({ kind: 'delay request', ms }, which),
    delayReplies: (ms, which = {}) => rules.add({ kind: 'delay reply', ms }, which),
    holdRequest: (which = {}) => hold('hold request', which),
    holdReply: (which = {}) => hold('hold reply', which),
  };
}

export async function startHttpFaults(target: ProxyTarget): Promise<HttpFaults> {
  const rules = makeRules();
  const calls: HttpCall[] = [];
  let lost = 0;
  let open = true;
  let changeDate: ((date: Date) => string | undefined) | undefined;
  let strip = false;

  const exchange = exchangeOver(target, {
    meet: (call) => {
      calls.push(call);
      return rules.take(call);
    },
    change: (reply) => {
      const kept = strip ? withoutItem(reply) : reply;
      return changeDate === undefined ? kept : withDate(kept, changeDate);
    },
    onLoss: () => {
      lost += 1;
    },
    isOpen: () => open,
  });
  // Closing an idle connection could fail a request that the client sends at that moment.
  const options = { keepAliveTimeout: 0, requestTimeout: 0, noDelay: true };
  const { server, port, close } = await listenSomewhere(() => createServer(options, exchange));
  return {
    ...faultControls(rules),
    host: '127.0.0.1',
    port,
    url: `http://127.0.0.1:${port}`,
    calls,
    get lost() {
      return lost;
    },
    count: (operation) => calls.filter((call) => (operation ?? call.operation) === call.operation).length,
    pass: rules.clear,
    rewriteDate: (change) => {
      changeDate = change;
    },
    stripItems: (wanted = true) => {
      strip = wanted;
    },
    stop: async () => {
      open = false;
      rules.clear();
      server.closeAllConnections();
      await close();
    },
  };
}
