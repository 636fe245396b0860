/**
 * Makes up what processes say to a store: mostly what a real one would say, and often late, twice, or out of order.
 * Refuses to look at the store: the script knows only its seed and the replies so far.
 */
import { type Claim, type Command, READ_WRITE_CAPACITY, type Reply } from '../../protocol/index.js';
import type { Random } from '../random.js';

/** A process on a key: its holds rise in number, and it remembers what it said. */
export interface Actor {
  readonly process: string;
  readonly inbox: string | null;
  /** Which of the connections it speaks through. */
  readonly connection: number;
  claim: Claim | null;
  number: number;
  expiresAt: number;
  readonly said: Command[];
}

/** What the processes of one key have seen, all together. */
export interface Plot {
  readonly key: string;
  readonly shape: Shape;
  readonly random: Random;
  /** Tokens seen, for evictions. */
  readonly tokens: number[];
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
  claimAnew: 8,
  release: 14,
  renew: 14,
  evict: 3,
  repeat: 12,
  withdrawEarly: 3,
  claimOld: 4,
} as const;

export function newActor(process: string, inbox: string | null, connection: number): Actor {
  return { process, inbox, connection, claim: null, number: 0, expiresAt: 0, said: [] };
}

export function nextCommand(plot: Plot, actor: Actor): Command {
  const command = makeUp(plot, actor);
  actor.said.push(command);
  return command;
}

/** What a reply teaches: tokens to evict, an expiry to add to, and when to go on under a new number. */
export function hear(plot: Plot, actor: Actor, command: Command, reply: Reply): void {
  if (reply.kind === 'granted') plot.tokens.push(reply.token);
  if (reply.kind === 'granted' || reply.kind === 'renewed') actor.expiresAt = reply.expiresAt;
  const own = command.kind !== 'evict' && command.hold.number === actor.number;
  const over = reply.kind === 'withdrawn' || reply.kind === 'lost' || reply.kind === 'released';
  if (own && over && plot.random.chance(0.6)) actor.claim = null;
}

function makeUp(plot: Plot, actor: Actor): Command {
  const { random } = plot;
  const current = actor.claim;
  if (current === null) return newClaim(plot, actor);
  switch (random.weighted(ACTS)) {
    case 'claimAnew':
      return newClaim(plot, actor);
    case 'claim':
      return random.chance(0.1) ? { ...current, queue: !current.queue } : current;
    case 'release':
      return {
        kind: 'release',
        key: plot.key,
        hold: current.hold,
        minHoldMs: random.chance(0.3) ? random.between(10, 150) : 0,
      };
    case 'renew':
      return renewal(plot, actor, current);
    case 'evict': {
      const upToToken = plot.tokens.length > 0 ? random.pick(plot.tokens.slice(-3)) : 1;
      return { kind: 'evict', key: plot.key, upToToken };
    }
    case 'repeat':
      return random.pick(actor.said.slice(-6));
    case 'withdrawEarly': {
      const hold = { process: actor.process, number: actor.number + 1 };
      return { kind: 'release', key: plot.key, hold, minHoldMs: 0 };
    }
    case 'claimOld': {
      const number = random.between(1, actor.number);
      return { ...current, hold: { process: actor.process, number } };
    }
  }
}

function newClaim({ key, shape, random }: Plot, actor: Actor): Claim {
  actor.number += 1;
  const [permits, capacity] = random.pick(WANTS[shape]);
  const claim: Claim = {
    kind: 'claim',
    key,
    hold: { process: actor.process, number: actor.number },
    owner: `owner of ${actor.process}`,
    permits,
    capacity,
    ttlMs: random.between(20, 200),
    queue: random.chance(0.85),
    inbox: actor.inbox,
    metadata: random.chance(0.2) ? '{"note":"it\'s \\"quoted\\""}' : null,
  };
  actor.claim = claim;
  return claim;
}

function renewal({ key, random }: Plot, actor: Actor, { hold }: Claim): Command {
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
