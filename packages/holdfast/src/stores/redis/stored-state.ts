/** Stored records, as the script returns them to a read, decoded into states. */
import {
  type Eviction,
  type Holder,
  type Rest,
  STATE_VERSION,
  type State,
  type Waiter,
} from '../../protocol/index.js';
import {
  type Answers,
  answerAt,
  isAbsent,
  listOf,
  numberOf,
  scriptError,
  textOf,
  textOrNull,
} from './codec.js';
import { ANSWER } from './lua/layout.js';

/** The stored state of the nth key of a call. Throws if it cannot be read. */
export function storedState(answers: Answers, index: number, key: string, redisKey: string): State {
  const answer = listOf(answerAt(answers, index));
  if (numberOf(answer[0]) !== ANSWER.RECORD) throw scriptError(answer, key, redisKey);
  const [, token, decision, holders, rests, waiters, ended, evictions] = answer;
  return {
    version: STATE_VERSION,
    token: numberOf(token),
    decision: numberOf(decision),
    holders: listOf(holders).map(holderOf),
    rests: listOf(rests).map(restOf),
    waiters: listOf(waiters).map(waiterOf),
    ended: listOf(ended).map((mark) => {
      const [process, number, until] = listOf(mark);
      return { process: textOf(process), number: numberOf(number), until: numberOf(until) };
    }),
    evictions: isAbsent(evictions) ? [] : listOf(evictions).map(evictionOf),
  };
}

function holderOf(entry: unknown): Holder {
  const [process, number, , , , , inbox, , , metadata] = listOf(entry);
  return {
    hold: { process: textOf(process), number: numberOf(number) },
    inbox: textOrNull(inbox),
    metadata: textOrNull(metadata),
    ...restOf(entry),
  };
}

function restOf(entry: unknown): Rest {
  const [, , owner, permits, capacity, expiresAt, , token, acquiredAt] = listOf(entry);
  return {
    owner: textOf(owner),
    permits: numberOf(permits),
    capacity: numberOf(capacity),
    token: numberOf(token),
    acquiredAt: numberOf(acquiredAt),
    expiresAt: numberOf(expiresAt),
  };
}

function evictionOf(entry: unknown): Eviction {
  const [process, number, until, reason] = listOf(entry);
  return {
    process: textOf(process),
    number: numberOf(number),
    until: numberOf(until),
    reason: textOrNull(reason),
  };
}

function waiterOf(entry: unknown): Waiter {
  const [process, number, owner, permits, capacity, expiresAt, inbox, since, wokenAt] = listOf(entry);
  return {
    hold: { process: textOf(process), number: numberOf(number) },
    owner: textOf(owner),
    permits: numberOf(permits),
    capacity: numberOf(capacity),
    inbox: textOrNull(inbox),
    since: numberOf(since),
    expiresAt: numberOf(expiresAt),
    wokenAt: isAbsent(wokenAt) ? null : numberOf(wokenAt),
  };
}
