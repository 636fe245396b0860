/** One key on a table: say something at a time of your choosing, and look. */
import {
  type Claim,
  type Command,
  type Decision,
  decide,
  type Evict,
  type Release,
  type Renew,
  type State,
} from '../../src/protocol/index.js';
import { deepFreeze } from './scripts.js';

export class Table {
  now: number;
  state: State | null = null;

  constructor(now: number) {
    this.now = now;
  }

  say(command: Command, afterMs = 0): Decision {
    this.now += afterMs;
    const decision = decide(deepFreeze(this.state), deepFreeze(command), this.now);
    this.state = decision.state;
    return decision;
  }

  /** The inboxes that it names for their turn. Every process's inbox has its name. */
  turns(command: Command, afterMs = 0): string[] {
    const { wakes } = this.say(command, afterMs);
    return wakes.filter(({ why }) => why === 'turn').map(({ inbox }) => inbox);
  }
}

export function claimBy(process: string, number: number, more: Partial<Claim> = {}): Claim {
  return {
    kind: 'claim',
    key: 'k',
    hold: { process, number },
    owner: process,
    permits: 1,
    capacity: 1,
    ttlMs: 10_000,
    queue: true,
    inbox: process,
    metadata: null,
    ...more,
  };
}

export function renewBy(process: string, number: number, more: Partial<Renew> = {}): Renew {
  return { kind: 'renew', key: 'k', hold: { process, number }, ttlMs: 10_000, block: false, ...more };
}

export function releaseBy(process: string, number: number, minHoldMs = 0): Release {
  return { kind: 'release', key: 'k', hold: { process, number }, minHoldMs };
}

export function evictUpTo(upToToken: number, reason: string | null = null): Evict {
  return { kind: 'evict', key: 'k', upToToken, reason };
}

export function evictOne(token: number, reason: string | null = null): Evict {
  return { kind: 'evict', key: 'k', fromToken: token, upToToken: token, reason };
}
