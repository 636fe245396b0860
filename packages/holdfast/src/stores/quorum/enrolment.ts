/**
 * Who belongs to the quorum. A server that lost data has forgotten promises, and must not vote before the others have made
 * up for it:
 *
 * 1. Find the members that still vote. At first there are none: then every server notes a new id, its place and the number
 *    of servers, and gets its vote only when all have noted it. Where that is broken off, the next run completes it.
 * 2. A majority has to vote. Read every key that any of them has, so that a majority of them accepts its value again:
 *    then nothing that the lost server had accepted is needed any more.
 * 3. Enrol the server at its place.
 */
import { systemClock } from '../../clock.js';
import { type ListQuery, StoreError } from '../../protocol/index.js';
import { messageOf } from '../clients/errors.js';
import type { RedisClient } from '../redis/clients.js';
import { scanKeys } from '../redis/key-scan.js';
import { otherSize } from './member.js';
import { Quorum } from './quorum.js';
import type { RedisMember } from './redis-member.js';
import { QuorumRegister } from './register.js';
import { membersOf, type QuorumStoreOptions } from './store.js';

/** The result of `enrolMembers`. */
export interface Enrolment {
  /** Places of the servers that were enrolled now, from 1. Empty where all were enrolled already. */
  readonly enrolled: readonly number[];
  /** Whether the quorum was made now. */
  readonly isNew: boolean;
}

const ALL_KEYS: ListQuery = { prefix: '' };
const COPIED_AT_ONCE = 64;

/**
 * Makes the servers one quorum, once, when all of them answer. Later it enrols servers again that lost their data or
 * were replaced, in the place where they are in the list; every other server has to answer then. Another number of
 * servers than before is refused.
 */
export async function enrolMembers(
  clients: readonly RedisClient[],
  options: QuorumStoreOptions = {},
): Promise<Enrolment> {
  const members = membersOf(clients, options);
  const quorum = new Quorum(members, systemClock);
  const greetings = await Promise.all(
    members.map(async (member) => {
      try {
        return await quorum.inTime(member.greet());
      } catch (error) {
        throw failed(`${member.name} does not answer (${messageOf(error)}), and every server has to`, error);
      }
    }),
  );
  const ids = new Set(
    greetings.flatMap(({ enrolled, isNoted }) => (enrolled === '' || isNoted ? [] : [enrolled])),
  );
  if (ids.size > 1)
    throw failed('the servers belong to different quorums: pass those that were enrolled together');
  const [id = systemClock.randomId()] = ids;
  const size = greetings.find(({ enrolled }) => enrolled === id)?.size ?? members.length;
  if (size !== members.length) {
    throw failed(
      `${otherSize(size, members.length)}. Another number of servers is a new quorum: stop everything that uses this ` +
        `one, delete the key "${members[0]?.enrolmentKey}" on all its servers, and enrol the new ones under another prefix`,
    );
  }
  const wrong = greetings.findIndex(({ enrolled, place }, index) => enrolled === id && place !== index + 1);
  if (wrong !== -1) {
    throw failed(
      `server ${wrong + 1} was enrolled as server ${greetings[wrong]?.place}: keep the order of the servers`,
    );
  }
  const states = greetings.map(({ before }) => before);
  const enrol = async (some: readonly number[], isVoting: boolean): Promise<void> => {
    for (const index of some) {
      const seat = { quorum: id, place: index + 1, size: members.length };
      const state = (await members[index]?.enrol(seat, isVoting, states[index] ?? '')) ?? '';
      if (state === '') {
        const twin = greetings.findIndex(({ run }) => run === greetings[index]?.run);
        throw failed(
          twin === index
            ? `server ${index + 1} was restarted, or enrolled by another process, meanwhile: try again`
            : `server ${index + 1} is the same as server ${twin + 1}: pass each server once`,
        );
      }
      states[index] = state;
    }
  };
  const isNew = ids.size === 0;
  const idle = greetings.flatMap(({ quorum: voting }, index) => (voting === null ? [index] : []));
  const noted = idle.filter(
    (index) => isNew || (greetings[index]?.isNoted && greetings[index]?.enrolled === id),
  );
  const lost = idle.filter((index) => !noted.includes(index));
  if (isNew) await enrol(noted, false);
  await enrol(noted, true);
  if (lost.length > 0) await copyAll(quorum, members, lost);
  await enrol(lost, true);
  return { enrolled: idle.map((index) => index + 1), isNew };
}

async function copyAll(
  quorum: Quorum,
  members: readonly RedisMember[],
  lost: readonly number[],
): Promise<void> {
  const voting = members.filter((_, index) => !lost.includes(index));
  if (voting.length < quorum.majority) {
    throw failed(
      `only ${voting.length} of ${members.length} servers have certainly kept their data, so locks may be forgotten. ` +
        'Stop everything that uses them, or wait until every lease has ended (no need if the others were restarted, and ' +
        `wrote every change to disk first); then delete the key "${members[0]?.enrolmentKey}" on all servers, and enrol ` +
        'them again',
    );
  }
  const register = new QuorumRegister(quorum, () => undefined);
  const scans = await Promise.all(
    voting.map(({ connection, keyPrefix }) => scanKeys(connection, keyPrefix, ALL_KEYS)),
  );
  const keys = [...new Set(scans.flat())];
  for (let from = 0; from < keys.length; from += COPIED_AT_ONCE) {
    await Promise.all(keys.slice(from, from + COPIED_AT_ONCE).map((key) => register.acceptAgain(key)));
  }
}

function failed(text: string, cause?: unknown): StoreError {
  return new StoreError(`The servers were not enrolled: ${text}.`, { operation: 'migrate', cause });
}
