/** Bugs that locks really have, each planted around `decide`. Made here, in tests: production code has no hook for it. */
import { type Decision, decide, sameHold } from '../../src/protocol/index.js';
import { lineBugs } from './planted-line-bugs.js';
import { bug, holderOf, leaving, type PlantedBug, seeing, withHolders } from './planting.js';

export const plantedBugs: readonly PlantedBug[] = [
  bug(
    'F27: a withdrawal is overtaken by its claim: no mark is kept for what is not held',
    /a withdrawal that overtakes its claim/,
    leaving((decision, command, before) =>
      command.kind === 'release' && !holderOf(before, command)
        ? { ...decision, state: { ...decision.state, ended: before.ended } }
        : decision,
    ),
  ),
  bug(
    'F27: a doubled claim after its release is granted: no mark is kept for what was held',
    /a claim doubled after its release/,
    leaving((decision, command, before) =>
      command.kind === 'release' && holderOf(before, command)
        ? { ...decision, state: { ...decision.state, ended: before.ended } }
        : decision,
    ),
  ),
  bug('F31: a doubled evict ends the next holder', /a doubled evict/, (state, command, now) =>
    decide(
      state,
      command.kind === 'evict' ? { ...command, upToToken: Number.MAX_SAFE_INTEGER } : command,
      now,
    ),
  ),
  bug('F31: an evict of one holder ends all before it', /an evict of one token ends/, (state, command, now) =>
    decide(state, command.kind === 'evict' ? { ...command, fromToken: 0 } : command, now),
  ),
  bug(
    'an evict looks for the first token of a hold only',
    /evicted by any token that was reserved/,
    (state, command, now) => {
      const isLater =
        command.kind === 'evict' &&
        (command.fromToken ?? 0) > 0 &&
        !state?.holders.some(({ token }) => token === command.upToToken);
      return decide(state, isLater ? { ...command, upToToken: 0 } : command, now);
    },
  ),
  bug(
    'an eviction is forgotten with the next grant',
    /learns the reason with its renewal/,
    leaving((decision) =>
      decision.reply.kind === 'granted'
        ? { ...decision, state: { ...decision.state, evictions: [] } }
        : decision,
    ),
  ),
  {
    name: 'only a few evictions are remembered',
    caughtBy: /more are evicted at once than are remembered/,
    decide: leaving((decision) => ({
      ...decision,
      state: { ...decision.state, evictions: decision.state.evictions.slice(-8) },
    })),
    // Random commands rarely evict as many.
    seenByModel: false,
  },
  bug(
    'F28: a late renewal shortens',
    /a late renewal never moves/,
    leaving((decision, command, _before, now) => {
      if (command.kind !== 'renew' || decision.reply.kind !== 'renewed' || command.added) return decision;
      const expiresAt = now + command.ttlMs;
      const shortened = withHolders(decision, (holder) =>
        sameHold(holder.hold, command.hold) ? { ...holder, expiresAt } : holder,
      );
      return { ...shortened, changed: true, reply: { ...decision.reply, expiresAt } };
    }),
  ),
  bug(
    'F28, P25: an addition applied twice adds twice',
    /an addition that arrives twice/,
    (state, command, now) => {
      const holder = state && holderOf(state, command);
      if (command.kind !== 'renew' || !command.added || !holder) return decide(state, command, now);
      return decide(state, { ...command, added: { ...command.added, expiresAt: holder.expiresAt } }, now);
    },
  ),
  bug(
    'a renewal revives a rest: the rest stays a holder',
    /leaves a rest that nothing renews/,
    leaving((decision, command, before, now) => {
      const holder = holderOf(before, command);
      if (command.kind !== 'release' || !holder) return decision;
      const expiresAt = holder.acquiredAt + command.minHoldMs;
      if (expiresAt <= now) return decision;
      const holders = [...decision.state.holders, { ...holder, expiresAt }];
      return { ...decision, state: { ...decision.state, holders, rests: before.rests, ended: before.ended } };
    }),
  ),
  {
    name: 'F9: a release does not look whose hold it is',
    caughtBy: /nobody releases or renews/,
    seenByModel: true,
    decide(state, command, now) {
      const [first] = state?.holders ?? [];
      const blind = command.kind === 'release' && first ? { ...command, hold: first.hold } : command;
      return decide(state, blind, now);
    },
  },
  bug(
    'F24: the second renewal always fails',
    /three renewals and then a release/,
    leaving((decision, command, before) => {
      const holder = holderOf(before, command);
      if (command.kind !== 'renew' || !holder || holder.owner.startsWith('renewed ')) {
        if (decision.reply.kind !== 'renewed') return decision;
        const { now, decision: number, othersWait } = decision.reply;
        return { ...decision, reply: { kind: 'lost', now, decision: number, othersWait } };
      }
      return withHolders(decision, (other) =>
        sameHold(other.hold, command.hold) ? { ...other, owner: `renewed ${other.owner}` } : other,
      );
    }),
  ),
  bug(
    'F4: the same claim again is another grant',
    /the same claim again is the same grant/,
    seeing((state, command) =>
      command.kind === 'claim'
        ? { ...state, holders: state.holders.filter((holder) => !sameHold(holder.hold, command.hold)) }
        : state,
    ),
  ),
  {
    name: 'F10: the token counts from one again after the record was cleaned up',
    caughtBy: /across the deletion of the record/,
    seenByModel: true,
    decide: leaving((decision, _command, before) => {
      const { reply } = decision;
      const first =
        reply.kind === 'granted' ? reply.token : reply.kind === 'renewed' ? reply.block?.token : undefined;
      if (first === undefined || decision.state.token === before.token) return decision;
      const back = first - (before.token + 1);
      const shift = (name: string, value: unknown): unknown =>
        (name === 'token' || name === 'tokenLast') && typeof value === 'number' && value >= first
          ? value - back
          : value;
      return JSON.parse(JSON.stringify(decision, shift)) as Decision;
    }),
  },
  bug(
    'a reader beside a mutex: only the claimant’s capacity counts',
    /the smallest capacity counts/,
    (state, command, now) => {
      const wide = state?.holders.map((holder) => ({ ...holder, capacity: Number.MAX_SAFE_INTEGER }));
      const decision = decide(state && { ...state, holders: wide ?? [] }, command, now);
      return withHolders(decision, (holder) => {
        const capacity = state?.holders.find((old) => sameHold(old.hold, holder.hold))?.capacity;
        return capacity === undefined ? holder : { ...holder, capacity };
      });
    },
  ),
  bug('P24: one holder’s expiry ends every holder', /holders expire one by one/, (state, command, now) => {
    const over = state?.holders.some((holder) => holder.expiresAt <= now) ?? false;
    return decide(
      state && over
        ? { ...state, holders: state.holders.filter(({ expiresAt }) => expiresAt <= now) }
        : state,
      command,
      now,
    );
  }),
  {
    name: 'P2: a takeover of an expired hold keeps the old owner',
    caughtBy: /P2: the one who took over/,
    seenByModel: true,
    decide: leaving((decision, command, before, now) => {
      const old = before.holders.find((holder) => holder.expiresAt <= now);
      if (decision.reply.kind !== 'granted' || command.kind !== 'claim' || !old) return decision;
      return withHolders(decision, (holder) =>
        sameHold(holder.hold, command.hold) ? { ...holder, hold: old.hold, owner: old.owner } : holder,
      );
    }),
  },
  {
    name: 'P3, P8: the store reads, and then writes without looking again',
    caughtBy: /claims that race each other/,
    caughtByUsers: /of many contenders/,
    seenByModel: true,
    readThenWrite: true,
    decide,
  },
  {
    name: 'F17: two spellings share a record',
    caughtBy: /awkward spelling/,
    seenByModel: false,
    place: (key) => key.toLowerCase(),
    decide,
  },
  ...lineBugs,
];
