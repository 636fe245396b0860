/**
 * An HTTP proxy in front of DynamoDB that gives, loses and delays answers as the service does on a bad day. Where several
 * faults fit a request, it meets the one that was asked for first. What happens below HTTP is the affair of `startProxy`,
 * which may be the target, or have this one as its target.
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
  /** When there is one: the next request that fits. */
  readonly arrived: Promise<HttpCall>;
  release(): void;
}

export interface HttpFaults {
  readonly host: string;
  readonly port: number;
  /** The endpoint for the SDK. */
  readonly url: string;
  /** All requests so far, those that met a fault included. */
  readonly calls: readonly HttpCall[];
  /** Replies lost so far. */
  readonly lost: number;
  count(operation?: string): number;
  /** Forgets all faults, and lets go what is held. */
  pass(): void;
  /** 400 ProvisionedThroughputExceededException, and the target does not hear of the request. */
  throttle(which?: WhichCalls): void;
  /** 500 InternalServerError, and the target does not hear of the request. */
  fail(which?: WhichCalls): void;
  /** Any other error of the service. */
  refuse(answer: ErrorAnswer, which?: WhichCalls): void;
  /** The connection is reset, and the target does not hear of the request. */
  loseRequests(which?: WhichCalls): void;
  /** The request goes through; its reply is dropped and the connection reset. */
  loseReplies(which?: WhichCalls): void;
  /** The target gets it this much later, even if the client has given up by then. */
  delayRequests(ms: number, which?: WhichCalls): void;
  /** The target has done it, and the client hears of it this much later. */
  delayReplies(ms: number, which?: WhichCalls): void;
  /** Stops the next request on its way, until `release`: also one whose client has given up then arrives. */
  holdRequest(which?: Omit<WhichCalls, 'times'>): HeldCall;
  /** Stops the reply of the next request. */
  holdReply(which?: Omit<WhichCalls, 'times'>): HeldCall;
  /** Changes the header `Date` of every reply from now on; undefined leaves it out. `pass` does not undo it. */
  rewriteDate(change: (date: Date) => string | undefined): void;
  /** Leaves out the item that failed conditions give back. `pass` does not undo it. */
  stripItems(strip?: boolean): void;
  stop(): Promise<void>;
}

const THROTTLED: ErrorAnswer = {
  status: 400,
  type: 'ProvisionedThroughputExceededException',
  message: 'The level of configured provisioned throughput for the table was exceeded.',
};
const FAILED: ErrorAnswer = { status: 500, type: 'InternalServerError', message: 'Internal server error' };

type Breaking = Pick<
  HttpFaults,
  | 'throttle'
  | 'fail'
  | 'refuse'
  | 'loseRequests'
  | 'loseReplies'
  | 'delayRequests'
  | 'delayReplies'
  | 'holdRequest'
  | 'holdReply'
>;

function breaking(rules: Rules): Breaking {
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
  // A connection that the client keeps must not be closed by us just when it is used again.
  const options = { keepAliveTimeout: 0, requestTimeout: 0, noDelay: true };
  const { server, port, close } = await listenSomewhere(() => createServer(options, exchange));
  return {
    ...breaking(rules),
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
