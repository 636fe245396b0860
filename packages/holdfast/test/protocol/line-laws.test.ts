/** The laws of the queue: whose turn it is, who is woken, and how long anybody can delay the others. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  decide,
  type HoldId,
  NAME_AGAIN_MS,
  POLL_MS,
  type State,
  sameHold,
  WAITER_LIFE_MS,
  type Waiter,
  WINDOW_HINT_MS,
  WINDOW_MS,
} from '../../src/protocol/index.js';
import { play, RUNS, START, scripts, type Traced } from './scripts.js';
import { claimBy, evictUpTo, releaseBy, Table } from './table.js';

function always(law: (traced: Traced) => void): void {
  fc.assert(
    fc.property(scripts, (script) => {
      for (const traced of play(script)) law(traced);
    }),
    RUNS,
  );
}

const isPresent = (waiter: Waiter, now: number): boolean =>
  waiter.expiresAt > now && (waiter.wokenAt === null || now < waiter.wokenAt + WINDOW_MS);

const hasWindow = (waiter: Waiter, now: number): boolean => waiter.wokenAt !== null && isPresent(waiter, now);

function fits(takers: readonly { permits: number; capacity: number }[]): boolean {
  const taken = takers.reduce((sum, { permits }) => sum + permits, 0);
  return taken <= Math.min(...takers.map(({ capacity }) => capacity));
}

/** Those whose turn comes before the claimant's, whether or not it is in the queue. */
function aheadOf(state: State, { command }: Traced, now: number): readonly Waiter[] {
  const place = state.waiters.findIndex(
    ({ hold }) => command.kind === 'claim' && sameHold(hold, command.hold),
  );
  return state.waiters.slice(0, place === -1 ? undefined : place).filter((waiter) => isPresent(waiter, now));
}

describe('the queue, whatever is said to it', () => {
  it('F19: is overtaken by nobody: whoever stands ahead and comes now still gets its turn', () => {
    always((traced) => {
      const { before, command, reply, now } = traced;
      if (reply.kind !== 'granted' || command.kind !== 'claim' || reply.token <= before.token) return;
      let { state } = traced;
      const granted: HoldId[] = [];
      for (const waiter of aheadOf(before, traced, now)) {
        const { hold, owner, permits, capacity, inbox } = waiter;
        if (!traced.state.waiters.some((other) => sameHold(other.hold, hold))) continue;
        // A claim from before the newest of its process, half a minute late: whoever sent it has given it up.
        if (granted.some(({ process, number }) => process === hold.process && number > hold.number)) continue;
        granted.push(hold);
        const claim = { ...command, hold, owner, permits, capacity, inbox };
        const decision = decide(state, claim, now);
        expect(decision.reply.kind).toBe('granted');
        ({ state } = decision);
      }
    });
  });

  it('F32: leaves no permit idle while somebody fits: all are called up to the first that does not fit, and none behind it', () => {
    always(({ state, now }) => {
      const called: { permits: number; capacity: number }[] = [...state.holders, ...state.rests];
      let blocked = false;
      for (const waiter of state.waiters.filter((one) => isPresent(one, now))) {
        blocked ||= !fits([...called, waiter]);
        expect(waiter.wokenAt === null).toBe(blocked);
        called.push(waiter);
      }
    });
  });

  it('F32: names everybody that it calls, and again whoever was called 50 ms ago and has not come', () => {
    always(({ before, state, wakes, now }) => {
      const named = (inbox: string | null): boolean =>
        wakes.some((wake) => wake.inbox === inbox && wake.why === 'turn');
      for (const waiter of state.waiters.filter((one) => one.inbox !== null && hasWindow(one, now))) {
        const old = before.waiters.find(({ hold }) => sameHold(hold, waiter.hold));
        const isNew = old?.wokenAt !== waiter.wokenAt;
        const isOverdue = waiter.wokenAt !== null && now >= waiter.wokenAt + NAME_AGAIN_MS;
        if (isNew || isOverdue) expect(named(waiter.inbox)).toBe(true);
      }
    });
  });

  it('names nobody who neither holds nor waits', () => {
    always(({ before, state, wakes }) => {
      const known = [before, state].flatMap(({ holders, waiters }) =>
        [...holders, ...waiters].map(({ inbox }) => inbox),
      );
      for (const { inbox } of wakes) expect(known).toContain(inbox);
    });
  });

  it('says in a busy answer when to look again: in time for whatever stands before, soon for a woken waiter', () => {
    always((traced) => {
      const { state, reply, now } = traced;
      if (reply.kind !== 'busy') return;
      expect(reply.freeInMs).toBeGreaterThan(0);
      const before = aheadOf(state, traced, now);
      if (before.some((waiter) => hasWindow(waiter, now)))
        expect(reply.freeInMs).toBeLessThanOrEqual(WINDOW_HINT_MS);
      const unwoken = before.filter((waiter) => !hasWindow(waiter, now));
      const ends = [...state.holders, ...state.rests, ...unwoken].map(({ expiresAt }) => expiresAt - now);
      expect(reply.freeInMs).toBeLessThanOrEqual(Math.min(...ends));
    });
  });

  it('F20: is held up by a dead waiter for its window and one poll at most', () => {
    const endings = fc.constantFrom('release' as const, 'expiry' as const, 'evict' as const);
    fc.assert(
      fc.property(
        endings,
        fc.integer({ min: 20, max: 3_000 }),
        fc.nat({ max: 1_399 }),
        (ending, heldMs, phaseMs) => {
          const table = new Table(START);
          const ttlMs = ending === 'expiry' ? heldMs : 60_000;
          const { token } = table.say(claimBy('holder', 1, { ttlMs })).reply as { token: number };
          table.say(claimBy('dead', 1));
          let comesAt = START + Math.min(phaseMs, heldMs);
          for (let polls = 0; ; polls++) {
            expect(polls).toBeLessThan(200);
            if (table.now < START + heldMs && comesAt >= START + heldMs && ending !== 'expiry') {
              table.now = START + heldMs;
              table.say(ending === 'release' ? releaseBy('holder', 1) : evictUpTo(token));
            }
            table.now = comesAt;
            const { reply } = table.say(claimBy('next', 1));
            if (reply.kind === 'granted') break;
            expect(reply).toMatchObject({ kind: 'busy' });
            if (reply.kind === 'busy') comesAt += Math.min(reply.freeInMs, POLL_MS * 2);
          }
          expect(table.now).toBeLessThanOrEqual(START + heldMs + WINDOW_MS + POLL_MS * 2);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('is not closed to a writer by readers who come and go: none that comes later is served before it', () => {
    const reader = fc.record({
      atMs: fc.nat({ max: 600 }),
      ttlMs: fc.integer({ min: 20, max: 200 }),
      queue: fc.boolean(),
    });
    fc.assert(
      fc.property(
        fc.array(reader, { minLength: 5, maxLength: 40 }),
        fc.nat({ max: 300 }),
        (readers, writesAtMs) => {
          const table = new Table(START);
          const writer = claimBy('writer', 1, { permits: 1_000, capacity: 1_000 });
          const arrivals = readers
            .toSorted((a, b) => a.atMs - b.atMs)
            .map((one, index) => ({ ...one, name: `r${index}` }));
          let askedAt: number | null = null;
          let servedAt: number | null = null;
          for (let at = 0; at <= 1_500; at++) {
            table.now = START + at;
            for (const { name, ttlMs, queue } of arrivals.filter(({ atMs }) => atMs === at)) {
              const { reply } = table.say(claimBy(name, 1, { capacity: 1_000, ttlMs, queue }));
              if (askedAt !== null && servedAt === null) expect(reply.kind).toBe('busy');
            }
            if (servedAt !== null || at < writesAtMs || (at - writesAtMs) % 25 !== 0) continue;
            askedAt ??= at;
            if (table.say(writer).reply.kind === 'granted') servedAt = at;
          }
          expect(servedAt).not.toBeNull();
          expect((servedAt ?? 0) - (askedAt ?? 0)).toBeLessThanOrEqual(200 + 25);
        },
      ),
      { numRuns: 200 },
    );
  });

  it('loses nobody who is heard from: a waiter leaves by a word or an end of its own process, or after 5 s of silence', () => {
    always(({ before, state, command, now }) => {
      for (const waiter of before.waiters) {
        if (state.waiters.some(({ hold }) => sameHold(hold, waiter.hold))) continue;
        const { process, number } = waiter.hold;
        const isLater = ({ hold }: { hold: HoldId }): boolean =>
          hold.process === process && hold.number > number;
        const own = command.kind === 'claim' || command.kind === 'release' ? command.hold : null;
        const isReplaced = own?.process === process && own.number >= number;
        const later = (one: State): number => [...one.holders, ...one.waiters].filter(isLater).length;
        const laterEnded = later(before) > later(state);
        expect(isReplaced || laterEnded || waiter.expiresAt <= now).toBe(true);
      }
      const order = (one: State): readonly string[] =>
        one.waiters.map(({ hold }) => `${hold.process} ${hold.number}`);
      const stayed = order(before).filter((hold) => order(state).includes(hold));
      expect(order(state).slice(0, stayed.length)).toEqual(stayed);
      for (const { expiresAt } of state.waiters) expect(expiresAt).toBeLessThanOrEqual(now + WAITER_LIFE_MS);
    });
  });
});
