/** The script of a member, and the member of the simulation: the same requests get the same answers. */
import { randomUUID } from 'node:crypto';
import { seededRandom } from 'holdfast/testkit';
import { available } from 'holdfast-test-servers';
import { describe, expect, it } from 'vitest';
import type {
  Greeting,
  MemberReply,
  Refusal,
  Request,
  Seat,
} from '../../packages/holdfast/src/stores/quorum/member.js';
import { membersOf } from '../../packages/holdfast/src/stores/quorum/store.js';
import { Schedule } from '../simulation/src/schedule.js';
import { SimulatedMember } from '../simulation/src/simulated-member.js';
import { QuorumScene } from './store-scene.js';

const ROUNDS = 400;

const seatOf = ({ quorum, place, size }: Greeting): Seat => ({ quorum: quorum ?? '', place, size });

function answered(reply: MemberReply | Refusal): MemberReply {
  if ('isRefused' in reply) throw new Error('Refused.');
  return reply;
}

const stored = ({ promised, accepted, value }: MemberReply) => ({ promised, accepted, value });

function requestOf(random: ReturnType<typeof seededRandom>, key: string, now: number): Request {
  const ballot = (): string =>
    `${1_000 + Math.floor(random.between(0, 12))}.${Math.floor(random.between(1, 3))}`;
  const until = random.chance(0.1) ? 0 : now + 3_600_000;
  const common = { key, ballot: ballot(), until, keepMs: Math.floor(random.between(60_000, 90_000)) };
  switch (random.pick(['peek', 'prepare', 'accept'] as const)) {
    case 'peek':
      return { kind: 'peek', key };
    case 'prepare': {
      const when = random.pick(['always', 'free', { accepted: '' }, { accepted: ballot() }] as const);
      return { kind: 'prepare', ...common, when };
    }
    case 'accept': {
      const next = random.chance(0.5) ? '' : `${1_020 + Math.floor(random.between(0, 9))}.1`;
      return { kind: 'accept', ...common, value: randomUUID(), isFree: random.chance(0.5), next };
    }
  }
}

describe.runIf(available('redis', { own: true }))('a member on Redis', () => {
  const seed = Number(process.env.HOLDFAST_SEED ?? Math.floor(Math.random() * 2 ** 31));

  it(`answers as the member of the simulation (HOLDFAST_SEED=${seed})`, async ({ onTestFinished }) => {
    const scene = await QuorumScene.open(onTestFinished);
    const [real] = membersOf(scene.clients, {});
    if (!real) throw new Error('No member.');
    const random = seededRandom(seed);
    const seat = seatOf(await real.greet());
    const simulated = new SimulatedMember(0, Date.now(), new Schedule());
    let key = randomUUID();
    const counts = { done: 0, refused: 0 };
    for (let round = 0; round < ROUNDS; round++) {
      if (round % 20 === 0) key = randomUUID();
      const request = requestOf(random, key, Date.now());
      const told = answered(await real.ask(request, seat));
      const expected = simulated.handle(request);
      const compared = ({ isDone, promised, accepted, value }: MemberReply) => {
        // The script leaves out of an answer what the proposer does not need.
        if (request.kind !== 'accept') return { isDone, promised, accepted, value };
        return isDone ? { isDone } : { isDone, promised, accepted };
      };
      expect(compared(told), JSON.stringify(request)).toEqual(compared(expected));
      const peek = { kind: 'peek', key } as const;
      expect(stored(answered(await real.ask(peek, seat)))).toEqual(stored(simulated.handle(peek)));
      counts[told.isDone ? 'done' : 'refused'] += 1;
      if (request.kind !== 'accept') expect(Math.abs(told.keptMs - expected.keptMs)).toBeLessThan(50_000);
    }
    expect(Math.min(counts.done, counts.refused)).toBeGreaterThan(ROUNDS / 20);
  });

  it('forgets a record only after the time it was asked to keep it, and never earlier because of a later request', async ({
    onTestFinished,
  }) => {
    const scene = await QuorumScene.open(onTestFinished);
    const [real] = membersOf(scene.clients, {});
    if (!real) throw new Error('No member.');
    const seat = seatOf(await real.greet());
    const until = Date.now() + 3_600_000;
    const ask = (ballot: string, keepMs: number) =>
      real.ask({ kind: 'prepare', key: 'k', ballot, when: 'always', until, keepMs }, seat);
    await ask('5.1', 100_000);
    await ask('6.1', 1_000);
    const { keptMs } = answered(await real.ask({ kind: 'peek', key: 'k' }, seat));
    expect(keptMs).toBeGreaterThan(50_000);
  });

  it('refuses every request under another id, place or number of servers', async ({ onTestFinished }) => {
    const scene = await QuorumScene.open(onTestFinished);
    const [, second] = membersOf(scene.clients, {});
    if (!second) throw new Error('No member.');
    const seat = seatOf(await second.greet());
    expect(seat).toMatchObject({ place: 2, size: 3 });
    for (const wrong of [
      { ...seat, place: 1 },
      { ...seat, size: 5 },
      { ...seat, quorum: 'other' },
    ]) {
      expect(await second.ask({ kind: 'peek', key: 'k' }, wrong)).toEqual({ isRefused: true, isOnce: true });
    }
    answered(await second.ask({ kind: 'peek', key: 'k' }, seat));
  });
});
