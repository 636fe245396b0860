/**
 * Generates the commands of processes: mostly those of a real process, and often late, repeated or out of order. Knows
 * only its seed and the replies so far, never the store.
 */
import { type Claim, type Command, READ_WRITE_CAPACITY, type Reply } from '../../protocol/index.js';
import type { Random } from '../random.js';

/** A process on a key: its hold numbers rise, and it remembers its commands. */
export interface ScriptedProcess {
  readonly process: string;
  readonly inbox: string | null;
  /** The index of its connection. */
  readonly connection: number;
  claim: Claim | null;
  number: number;
  expiresAt: number;
  readonly said: Command[];
}

/** What all processes of one key have seen. */
export interface KeyScript {
  readonly key: string;
  readonly shape: Shape;
  readonly random: Random;
  /** Tokens seen, for evictions. */
  readonly tokens: number[];
  /** How many of the next commands are often renewals, because a holder was evicted and may learn of it. */
  renewalsAfter: number;
}

export type Shape = 'mutex' | 'semaphore' | 'read-write' | 'mixed';

type Wants = readonly [permits: number, capacity: number];

const WANTS: Readonly<Record<Shape, readonly Wants[]>> = {
  mutex: [[1, 1]],
  semaphore: [
    [1, 3],
    [1, 3],
    [2, 3],
    [3, 3],
  ],
  'read-write': [
    [1, READ_WRITE_CAPACITY],
    [1, READ_WRITE_CAPACITY],
    [READ_WRITE_CAPACITY, READ_WRITE_CAPACITY],
  ],
  mixed: [
    [1, 1],
    [1, 2],
    [1, READ_WRITE_CAPACITY],
    [2, 4],
  ],
};

export const SHAPES = Object.keys(WANTS) as Shape[];

const ACTS = {
  claim: 42,
  claimAgain: 8,
  release: 14,
  renew: 14,
  evict: 8,
  repeat: 12,
  withdrawEarly: 3,
  claimOld: 4,
} as const;

const RENEWALS_AFTER = 8;

export function newProcess(process: string, inbox: string | null, connection: number): ScriptedProcess {
  return { process, inbox, connection, claim: null, number: 0, expiresAt: 0, said: [] };
}

export function nextCommand(script: KeyScript, actor: ScriptedProcess): Command {
  const command = makeUp(script, actor);
  actor.said.push(command);
  return command;
}

/** Learns from a reply: tokens to evict, an expiry to extend, and when to use a new hold number. */
export function learn(script: KeyScript, actor: ScriptedProcess, command: Command, reply: Reply): void {
  if (reply.kind === 'granted') script.tokens.push(reply.token);
  if (reply.kind === 'renewed' && reply.block) script.tokens.push(reply.block.token);
  if (reply.kind === 'evicted' && reply.count > 0) script.renewalsAfter = RENEWALS_AFTER;
  if (reply.kind === 'granted' || reply.kind === 'renewed') actor.expiresAt = reply.expiresAt;
  const own = command.kind !== 'evict' && command.hold.number === actor.number;
  const over = reply.kind === 'withdrawn' || reply.kind === 'lost' || reply.kind === 'released';
  if (own && over && script.random.chance(0.6)) actor.claim = null;
}

function makeUp(script: KeyScript, actor: ScriptedProcess): Command {
  const { random } = script;
  const current = actor.claim;
  if (current === null) return newClaim(script, actor);
  if (script.renewalsAfter > 0) {
    script.renewalsAfter -= 1;
    if (random.chance(0.5)) return renewal(script, actor, current);
  }
  switch (random.weighted(ACTS)) {
    case 'claimAgain':
      return newClaim(script, actor);
    case 'claim':
      return random.chance(0.1) ? { ...current, queue: !current.queue } : current;
    case 'release':
      return {
        kind: 'release',
        key: script.key,
        hold: current.hold,
        minHoldMs: random.chance(0.3) ? random.between(10, 150) : 0,
      };
    case 'renew':
      return renewal(script, actor, current);
    case 'evict':
      return eviction(script);
    case 'repeat':
      return random.pick(actor.said.slice(-6));
    case 'withdrawEarly': {
      const hold = { process: actor.process, number: actor.number + 1 };
      return { kind: 'release', key: script.key, hold, minHoldMs: 0 };
    }
    case 'claimOld': {
      const number = random.between(1, actor.number);
      return { ...current, hold: { process: actor.process, number } };
    }
  }
}

function newClaim({ key, shape, random }: KeyScript, actor: ScriptedProcess): Claim {
  actor.number += 1;
  const [permits, capacity] = random.pick(WANTS[shape]);
  const claim: Claim = {
    kind: 'claim',
    key,
    hold: { process: actor.process, number: actor.number },
    owner: `owner of ${actor.process}`,
    permits,
    capacity,
    // Mostly soon over; some outlast what is evicted, renewed or released.
    ttlMs: random.chance(0.2) ? 3_000 : random.between(20, 200),
    queue: random.chance(0.85),
    inbox: actor.inbox,
    metadata: random.chance(0.2) ? '{"note":"it\'s \\"quoted\\""}' : null,
  };
  actor.claim = claim;
  return claim;
}

/** All up to a token that was seen, or one holder, also by a later token of its block; with a reason or without. */
function eviction({ key, tokens, random }: KeyScript): Command {
  const seen = tokens.length > 0 ? random.pick(tokens.slice(-random.between(1, 3))) : 1;
  const upToToken = seen + random.pick([0, 0, 1]);
  const reason = random.pick([null, 'it\'s "late": ä']);
  return { kind: 'evict', key, fromToken: random.pick([0, upToToken]), upToToken, reason };
}

function renewal({ key, random }: KeyScript, actor: ScriptedProcess, { hold }: Claim): Command {
  const plain = {
    kind: 'renew',
    key,
    hold,
    ttlMs: random.between(20, 200),
    block: random.chance(0.4),
  } as const;
  if (!random.chance(0.25)) return plain;
  return { ...plain, added: { ms: random.between(-40, 80), expiresAt: actor.expiresAt } };
}
