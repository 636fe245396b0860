/** The laws of the lock, for any script: who may be granted what, and what a command may never change. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Command,
  decide,
  EVICTION_MS,
  EVICTIONS_MAX,
  type Evict,
  type Holder,
  type HoldId,
  KEEP_MS,
  QUEUE_MAX,
  type Rest,
  type State,
  sameHold,
} from '../../src/protocol/index.js';
import { play, RUNS, type Script, scripts, scriptsWithClockSteps, type Traced } from './scripts.js';

function always(law: (trace: readonly Traced[]) => void, from: fc.Arbitrary<Script> = scripts): void {
  fc.assert(
    fc.property(from, (script) => law(play(script))),
    RUNS,
  );
}

const isHeld = (state: State, hold: HoldId): boolean =>
  state.holders.some((holder) => sameHold(holder.hold, hold));

const nameOf = ({ process, number }: HoldId): string => `${process} ${number}`;

/** A grant that this very decision made. */
const isFresh = ({ before, command, reply }: Traced): boolean =>
  reply.kind === 'granted' && command.kind === 'claim' && reply.token > before.token;

describe('a key, whatever is said to it', () => {
  it('never has more permits out than the smallest capacity that its holders name', () => {
    always((trace) => {
      for (const { state } of trace) {
        const takers = [...state.holders, ...state.rests];
        const taken = takers.reduce((sum, { permits }) => sum + permits, 0);
        expect(taken).toBeLessThanOrEqual(
          Math.min(...takers.map(({ capacity }) => capacity), Number.MAX_SAFE_INTEGER),
        );
      }
    }, scriptsWithClockSteps);
  });

  it('F10: gives tokens that rise in the order of decision, blocks included, even when its clock steps back', () => {
    always((trace) => {
      let last = 0;
      let decided = 0;
      for (const traced of trace) {
        const { reply, state, changed } = traced;
        const given =
          reply.kind === 'renewed' ? reply.block : reply.kind === 'granted' && isFresh(traced) ? reply : null;
        if (given) {
          expect(given.token).toBeGreaterThan(last);
          expect(given.tokenLast).toBeGreaterThanOrEqual(given.token);
          last = given.tokenLast;
        }
        expect(state.token).toBe(last);
        expect(Number.isSafeInteger(state.token)).toBe(true);
        if (changed) expect(state.decision).toBeGreaterThan(decided);
        else expect(state.decision).toBe(decided);
        decided = state.decision;
      }
    }, scriptsWithClockSteps);
  });

  it('is changed no further by a repeated command, but for a block and for how long a mark is kept', () => {
    always((trace) => {
      for (const { state, command, now, reply } of trace) {
        const again = decide(state, command, now);
        expect(essence(again.state, command)).toEqual(essence(state, command));
        if (command.kind === 'claim') expect(again.reply).toEqual(reply);
        if (command.kind === 'evict') expect(again.reply).toMatchObject({ kind: 'evicted', count: 0 });
        if (command.kind === 'release') expect(again.reply).toMatchObject({ kind: 'released', held: false });
        if (command.kind === 'renew') expect(again.reply.kind).toBe(reply.kind);
      }
    });
  });

  it('F27: grants nothing to a hold that was released, withdrawn, evicted or expired within the keeping time', () => {
    always((trace) => {
      const ended = new Map<string, { number: number; at: number }>();
      const end = ({ process, number }: HoldId, at: number): void => {
        if (number > (ended.get(process)?.number ?? 0)) ended.set(process, { number, at });
      };
      for (const traced of trace) {
        const { before, command, now, state, reply } = traced;
        for (const { hold, expiresAt } of before.holders) if (expiresAt <= now) end(hold, now);
        for (const { hold, expiresAt } of before.waiters) if (expiresAt <= now) end(hold, now);
        if (command.kind === 'release') end(command.hold, now);
        if (command.kind === 'evict') {
          for (const { hold } of before.holders) if (!isHeld(state, hold)) end(hold, now);
        }
        if (command.kind !== 'claim') continue;
        const mark = ended.get(command.hold.process);
        const isOver = mark !== undefined && mark.number >= command.hold.number && now < mark.at + KEEP_MS;
        if (isOver && !isHeld(before, command.hold)) expect(reply.kind).toBe('withdrawn');
        if (isFresh(traced)) expect(isOver).toBe(false);
      }
    });
  });

  it('F6: renews only what is held and not over, and grants only what lasts', () => {
    always((trace) => {
      for (const { before, command, now, reply } of trace) {
        if (command.kind === 'renew') {
          const holder = before.holders.find(({ hold }) => sameHold(hold, command.hold));
          expect(reply.kind).toBe(holder && holder.expiresAt > now ? 'renewed' : 'lost');
        }
        if (reply.kind === 'granted' || reply.kind === 'renewed')
          expect(reply.expiresAt).toBeGreaterThan(now);
      }
    });
  });

  it('F28: never moves an expiry back, and ends a hold only by its end, its release or an eviction', () => {
    always((trace) => {
      for (const { before, state, command, now } of trace) {
        for (const old of before.holders) {
          const holder = state.holders.find(({ hold }) => sameHold(hold, old.hold));
          if (holder) expect(holder.expiresAt).toBeGreaterThanOrEqual(old.expiresAt);
          else expect(mayEnd(command, old, before) || old.expiresAt <= now).toBe(true);
          if (holder) expect({ ...holder, expiresAt: 0 }).toEqual({ ...old, expiresAt: 0 });
        }
        for (const rest of before.rests.filter(({ expiresAt }) => expiresAt > now)) {
          const evicted = command.kind === 'evict' && isNamed(command, rest, before);
          expect(state.rests.includes(rest)).toBe(!evicted);
        }
      }
    });
  });

  it('F31: an evict ends all that it names, and each of them learns why until its time is over', () => {
    always((trace) => {
      const evicted = new Map<string, { reason: string | null; until: number }>();
      for (const { before, state, command, reply, now } of trace) {
        if (command.kind === 'evict') {
          const live = before.holders.filter(({ expiresAt }) => expiresAt > now);
          const named = live.filter((holder) => isNamed(command, holder, before));
          for (const { hold, expiresAt } of named) {
            expect(isHeld(state, hold)).toBe(false);
            evicted.set(nameOf(hold), {
              reason: command.reason ?? null,
              until: Math.min(expiresAt, now + EVICTION_MS),
            });
          }
          const rests = before.rests.filter((rest) => rest.expiresAt > now && isNamed(command, rest, before));
          expect(reply).toMatchObject({ kind: 'evicted', count: named.length + rests.length });
        }
        if (reply.kind !== 'lost' || command.kind !== 'renew') continue;
        const known = evicted.get(nameOf(command.hold));
        // Of more, the first may be forgotten.
        if (known && ![...evicted.values()].slice(-EVICTIONS_MAX).includes(known)) continue;
        const isKnown = known !== undefined && known.until > now;
        expect(reply.evicted).toEqual(isKnown ? { reason: known.reason } : undefined);
      }
    });
  });

  it('keeps what it was given as it was, and gives the same state back when nothing changed', () => {
    // Every input of `play` is frozen, deep down: a change in place would have thrown.
    always((trace) => {
      for (const { before, state, changed } of trace) {
        if (changed) expect(state).not.toBe(before);
        else expect(state).toBe(before);
      }
    }, scriptsWithClockSteps);
  });

  it('has every hold in one place, no more in the queue than fit, and no waiter that a later one of its process replaced', () => {
    always((trace) => {
      for (const { state, command } of trace) {
        const ids = [...state.holders, ...state.waiters].map(({ hold }) => `${hold.process} ${hold.number}`);
        expect(new Set(ids).size).toBe(ids.length);
        expect(state.waiters.length).toBeLessThanOrEqual(QUEUE_MAX);
        if (command.kind !== 'claim' || isHeld(state, command.hold)) continue;
        const { process, number } = command.hold;
        const marked = state.ended.some((mark) => mark.process === process && mark.number >= number);
        const earlier = state.waiters.filter(({ hold }) => hold.process === process && hold.number < number);
        if (!marked) expect(earlier).toEqual([]);
      }
    });
  });

  it('says truly where a waiter stands and whether others wait', () => {
    always((trace) => {
      for (const { state, command, reply, now } of trace) {
        const own = command.kind === 'evict' ? '' : command.hold.process;
        expect(reply.othersWait).toBe(state.waiters.some(({ hold }) => hold.process !== own));
        expect(reply).toMatchObject({ now, decision: state.decision });
        if (reply.kind !== 'busy' || command.kind !== 'claim') continue;
        const place = state.waiters.findIndex(({ hold }) => sameHold(hold, command.hold));
        expect(reply.position).toBe(place === -1 ? null : place);
      }
    });
  });
});

function essence(state: State, command: Command) {
  const { decision: _, ended, token, ...rest } = state;
  const hasBlock = command.kind === 'renew' && command.block;
  const marks = ended.map(({ process, number }) => `${process} ${number}`).sort();
  return { ...rest, marks, token: hasBlock ? 0 : token };
}

function mayEnd(command: Command, old: Holder, before: State): boolean {
  if (command.kind === 'evict') return isNamed(command, old, before);
  return command.kind === 'release' && sameHold(command.hold, old.hold);
}

/** Whether the evict names a token of the holder: of its own one, or of the blocks of an exclusive hold. */
function isNamed({ fromToken = 0, upToToken }: Evict, entry: Holder | Rest, { token }: State): boolean {
  const last = entry.permits === entry.capacity ? token : entry.token;
  return entry.token <= upToToken && fromToken <= last;
}
