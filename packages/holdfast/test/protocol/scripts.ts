/**
 * Scripts for the laws: several processes say what real ones say, late, twice and out of order, in small steps of
 * time. A script is data, so that fast-check can shrink it; the trace is what `decide` made of it.
 */
import fc from 'fast-check';
import { isLongRun } from '../../../../tests/long-run.js';
import {
  type Claim,
  type Command,
  type Decision,
  decide,
  EMPTY_STATE,
  type State,
} from '../../src/protocol/index.js';

export const START = 1_700_000_000_000;

/** How many scripts each law is tried on. A failure prints its seed. */
export const RUNS = { numRuns: isLongRun ? 6_000 : 300 };

export interface Step {
  readonly who: number;
  readonly act:
    | 'claim'
    | 'claimAnew'
    | 'claimOld'
    | 'release'
    | 'withdraw'
    | 'renew'
    | 'add'
    | 'evict'
    | 'repeat';
  readonly afterMs: number;
  readonly wants: number;
  readonly ttlMs: number;
  readonly minHoldMs: number;
  readonly queue: boolean;
  readonly back: number;
}

export interface Script {
  readonly wants: readonly (readonly [permits: number, capacity: number])[];
  readonly steps: readonly Step[];
}

export interface Traced extends Decision {
  readonly before: State;
  readonly command: Command;
  readonly now: number;
}

const WANTS: Script['wants'][] = [
  [[1, 1]],
  [
    [1, 3],
    [2, 3],
    [3, 3],
  ],
  [
    [1, 1_000],
    [1_000, 1_000],
  ],
  [
    [1, 1],
    [1, 2],
    [2, 4],
    [1, 1_000],
  ],
];

const ahead = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 5 }) },
  { weight: 4, arbitrary: fc.integer({ min: 15, max: 200 }) },
  { weight: 2, arbitrary: fc.constantFrom(49, 50, 51, 499, 500, 501) },
  { weight: 1, arbitrary: fc.constantFrom(1_200, 4_999, 5_000, 29_990) },
);

const act = fc.oneof(
  { weight: 10, arbitrary: fc.constant('claim' as const) },
  { weight: 4, arbitrary: fc.constant('claimAnew' as const) },
  { weight: 4, arbitrary: fc.constant('release' as const) },
  { weight: 3, arbitrary: fc.constantFrom('renew' as const, 'add' as const) },
  { weight: 3, arbitrary: fc.constant('repeat' as const) },
  { weight: 2, arbitrary: fc.constantFrom('claimOld' as const, 'withdraw' as const, 'evict' as const) },
);

const stepWith = (afterMs: fc.Arbitrary<number>): fc.Arbitrary<Step> =>
  fc.record({
    who: fc.integer({ min: 0, max: 4 }),
    act,
    afterMs,
    wants: fc.nat({ max: 3 }),
    ttlMs: fc.integer({ min: 20, max: 200 }),
    minHoldMs: fc.oneof(
      { weight: 3, arbitrary: fc.constant(0) },
      { weight: 1, arbitrary: fc.integer({ min: 1, max: 150 }) },
    ),
    queue: fc.nat({ max: 5 }).map((one) => one > 0),
    back: fc.nat({ max: 5 }),
  });

const scriptWith = (step: fc.Arbitrary<Step>): fc.Arbitrary<Script> =>
  fc.record({
    wants: fc.constantFrom(...WANTS),
    steps: fc.array(step, { minLength: 1, maxLength: 60, size: 'max' }),
  });

/** Time only goes on. */
export const scripts = scriptWith(stepWith(ahead));

/** The store's clock steps back now and then, as after a failover (F25). */
export const scriptsWithClockSteps = scriptWith(
  stepWith(
    fc.oneof({ weight: 4, arbitrary: ahead }, { weight: 1, arbitrary: fc.integer({ min: -300, max: -1 }) }),
  ),
);

interface Speaker {
  number: number;
  claim: Claim | null;
  expiresAt: number;
  readonly said: Command[];
}

export function play(script: Script): Traced[] {
  const speakers = Array.from(
    { length: 5 },
    (): Speaker => ({ number: 0, claim: null, expiresAt: 0, said: [] }),
  );
  const tokens: number[] = [];
  const trace: Traced[] = [];
  let state: State | null = null;
  let now = START;
  for (const step of script.steps) {
    const speaker = speakers[step.who];
    if (!speaker) continue;
    now += step.afterMs;
    const command = say(script, step, speaker, tokens);
    speaker.said.push(command);
    const decision: Decision = decide(deepFreeze(state), deepFreeze(command), now);
    trace.push({ ...decision, before: state ?? EMPTY_STATE, command, now });
    state = decision.state;
    const { reply } = decision;
    if (reply.kind === 'granted') tokens.push(reply.token);
    if (reply.kind === 'granted' || reply.kind === 'renewed') speaker.expiresAt = reply.expiresAt;
  }
  return trace;
}

function say(script: Script, step: Step, speaker: Speaker, tokens: readonly number[]): Command {
  const process = `p${step.who}`;
  const current = speaker.claim;
  if (!current) return claimAnew(script, step, speaker);
  const { key, hold } = current;
  switch (step.act) {
    case 'claimAnew':
      return claimAnew(script, step, speaker);
    case 'claim':
      return current;
    case 'claimOld':
      return { ...current, hold: { process, number: Math.max(hold.number - step.back, 1) } };
    case 'release':
      return { kind: 'release', key, hold, minHoldMs: step.minHoldMs };
    case 'withdraw':
      return { kind: 'release', key, hold: { process, number: hold.number + 1 }, minHoldMs: 0 };
    case 'renew':
      return { kind: 'renew', key, hold, ttlMs: step.ttlMs, block: step.back % 2 === 0 };
    case 'add':
      return {
        kind: 'renew',
        key,
        hold,
        ttlMs: 1,
        block: false,
        added: { ms: step.ttlMs, expiresAt: speaker.expiresAt },
      };
    case 'evict':
      return eviction(step, key, tokens.at(-1 - step.back) ?? 0);
    case 'repeat':
      return speaker.said.at(-1 - step.back) ?? current;
  }
}

/** Up to a token, or exactly one, now and then a later one of a block; with a reason or without. */
function eviction({ wants, ttlMs }: Step, key: string, token: number): Command {
  const upToToken = wants === 3 ? token + 1 : token;
  const one = wants > 1 ? { fromToken: upToToken } : {};
  return { kind: 'evict', key, upToToken, ...one, ...(ttlMs % 2 === 0 && { reason: `reason ${ttlMs}` }) };
}

function claimAnew({ wants }: Script, step: Step, speaker: Speaker): Claim {
  const [permits, capacity] = wants[step.wants % wants.length] ?? [1, 1];
  const process = `p${step.who}`;
  speaker.number += 1;
  speaker.claim = {
    kind: 'claim',
    key: 'k',
    hold: { process, number: speaker.number },
    owner: process,
    permits,
    capacity,
    ttlMs: step.ttlMs,
    queue: step.queue,
    inbox: step.who === 4 ? null : process,
    metadata: null,
  };
  return speaker.claim;
}

export function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) deepFreeze(inner);
  }
  return value;
}
