/**
 * The script decides usual commands in a way of its own. Here the same random commands go through the script as it is,
 * through the script without that way, and through `decide`, all at the same simulated times: replies, records and
 * times to live have to be equal.
 */
import {
  type Command,
  decide,
  EMPTY_STATE,
  expendableAt,
  type Release,
  type Renew,
  type Reply,
  type State,
} from 'holdfast/protocol';
import { type Random, seededRandom } from 'holdfast/testkit';
import { available, type RedisServer, startRedis } from 'holdfast-test-servers';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { answerAt, answersOf, replyOf } from '../../packages/holdfast/src/stores/redis/codec.js';
import { commandEncoder, encodeReads } from '../../packages/holdfast/src/stores/redis/encoder.js';
import { SCRIPT } from '../../packages/holdfast/src/stores/redis/script.js';
import { storedState } from '../../packages/holdfast/src/stores/redis/stored-state.js';
import { isLongRun } from '../long-run.js';
import { claimOf } from './store-scene.js';

const SEQUENCES = isLongRun ? 120 : 25;
const STEPS = 60;
const KEYS = ['one', 'two', 'three'] as const;
const PROCESSES = ['ann', 'bob', 'an "odd" näme\n1 2', 'of long standing'] as const;
/** Where the numbers of its holds begin: beyond four digits of seven bits. */
const NUMBERS_FROM: Readonly<Record<string, number>> = { 'of long standing': 2 ** 45 + 2 ** 28 - 3 };

/** Time comes from a key, and every time to live goes to one: beside the lock's own, so that nothing expires meanwhile. */
const SIMULATED = `
local server = redis
local redis = { pcall = server.pcall }
function redis.call(name, key, ...)
  if name == 'TIME' then
    local now = server.call('GET', 'now')
    return { string.sub(now, 1, -4), string.sub(now, -3) .. '999' }
  end
  if name == 'SET' then
    local record, _, keepMs = ...
    server.call('SET', key .. ':keepMs', string.format('%d', keepMs))
    return server.call('SET', key, record)
  end
  return server.call(name, key, ...)
end
`;
const USUAL_AND_FULL = SIMULATED + SCRIPT;
const FULL_ONLY = USUAL_AND_FULL.replace('pcall(decideUsual)', '');

/** Mostly what a process does: it claims what is free under a new number, renews, releases. Else late, twice or by another. */
function nextCommand(
  random: Random,
  states: ReadonlyMap<string, { readonly state: State }>,
  numbers: Map<string, number>,
  tokens: readonly number[],
): Command {
  const key = random.pick(KEYS);
  const holder = states.get(key)?.state.holders[0];
  const isUsual = random.chance(0.85);
  const process = isUsual && holder ? holder.hold.process : random.pick(PROCESSES);
  const place = `${process} ${key}`;
  const number = numbers.get(place) ?? NUMBERS_FROM[process] ?? 0;
  const late = { process, number: random.chance(0.3) ? Math.max(0, number - 1) : number };
  const hold = isUsual && holder ? holder.hold : late;
  const usual = holder
    ? { claim: 0, release: 3, renew: 2, evict: 0 }
    : { claim: 1, release: 0, renew: 0, evict: 0 };
  const kind = random.weighted(isUsual ? usual : { claim: 10, release: 9, renew: 6, evict: 1 });
  if (kind === 'evict') {
    const upToToken = tokens.at(-1) ?? 0;
    const fromToken = random.pick([0, upToToken]);
    return { kind, key, fromToken, upToToken, reason: random.pick([null, 'late, "nä"']) };
  }
  if (kind === 'release') {
    return { kind, key, hold, minHoldMs: random.chance(0.1) ? 20 : 0 } satisfies Release;
  }
  if (kind === 'renew') {
    const ttlMs = random.pick([50, 10_000]);
    const added = random.chance(0.1) ? { added: { ms: 100, expiresAt: 1 } } : {};
    return { kind, key, hold, ttlMs, block: random.chance(0.3), ...added } satisfies Renew;
  }
  numbers.set(place, number + 1);
  const capacity = Number(random.weighted({ 1: 6, 3: 1, 300: 0.5 }));
  return claimOf(key, process, {
    hold: random.chance(0.1) ? hold : { process, number: number + 1 },
    capacity,
    permits: random.pick([1, capacity]),
    ttlMs: random.pick([50, 10_000, 10_000]),
    queue: random.chance(0.1),
    inbox: random.chance(0.7) ? 'inbox' : null,
    metadata: random.chance(0.1) ? random.pick(['{"a":"ä"}', 'm'.repeat(128), 'm'.repeat(5_000)]) : null,
  });
}

describe.runIf(available('redis'))('usual commands', () => {
  let server: RedisServer;
  let client: Redis;
  const encode = commandEncoder('');
  let usual = 0;
  const digests = new Map<string, string>();
  const run = (script: string, ...args: (string | number | Buffer)[]): Promise<unknown> =>
    client.evalsha(digests.get(script) ?? '', ...(args as [number, ...(string | Buffer)[]]));

  beforeAll(async () => {
    server = await startRedis({ own: true });
    client = new Redis(server.url);
    for (const script of [SCRIPT, USUAL_AND_FULL, FULL_ONLY]) {
      digests.set(script, String(await client.script('LOAD', script)));
    }
  });

  afterAll(async () => {
    client?.disconnect();
    await server?.stop();
  });

  async function applied(script: string, prefix: string, commands: readonly Command[]): Promise<Reply[]> {
    const keys = commands.map(({ key }) => prefix + key);
    const reply = await run(script, keys.length, ...keys, ...encode(commands));
    const answers = answersOf(reply, keys.length);
    usual += commands.filter((_, index) => !Array.isArray(answerAt(answers, index))).length;
    return commands.map((command, index) => replyOf(answers, index, command, ''));
  }

  async function records(prefix: string): Promise<unknown[]> {
    const keys = KEYS.map((key) => prefix + key);
    const [reply, kept] = await Promise.all([
      run(SCRIPT, 3, ...keys, encodeReads(3)),
      client.mget(keys.map((key) => `${key}:keepMs`)),
    ]);
    const answers = answersOf(reply, 3);
    return KEYS.map((key, index) => ({
      state: storedState(answers, index, key, key),
      keepMs: Number(kept[index] ?? 0),
    }));
  }

  it('are answered and stored as the full script and decide do', { timeout: 120_000 }, async () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    for (let sequence = 0; sequence < SEQUENCES; sequence++) {
      const random = seededRandom(seed + sequence);
      await client.flushall();
      const states = new Map<string, { state: State; keepMs: number }>();
      const numbers = new Map<string, number>();
      const tokens: number[] = [];
      let now = 1_794_887_240_614;
      for (let step = 0; step < STEPS; step++) {
        now += Number(random.weighted({ 0: 6, 1: 6, 7: 3, 60: 1, 6000: 0.3, 31000: 0.2, '-3': 0.2 }));
        const commands = Array.from({ length: random.pick([1, 1, 2, 6]) }, () =>
          nextCommand(random, states, numbers, tokens),
        );
        const expected = commands.map((command): Reply => {
          const before = states.get(command.key) ?? { state: EMPTY_STATE, keepMs: 0 };
          const { state, changed, reply } = decide(before.state, command, now);
          if (changed) states.set(command.key, { state, keepMs: expendableAt(state) - now });
          if (reply.kind === 'granted') tokens.push(reply.token);
          return reply;
        });
        const told = `seed ${seed + sequence}, step ${step}: ${JSON.stringify(commands)}`;
        // In one round trip: the connection keeps their order.
        const [, ...answered] = await Promise.all([
          client.set('now', now),
          applied(USUAL_AND_FULL, 'both:', commands),
          applied(FULL_ONLY, 'full:', commands),
          records('both:'),
          records('full:'),
        ]);
        const stored = KEYS.map((key) => states.get(key) ?? { state: EMPTY_STATE, keepMs: 0 });
        expect(answered, told).toEqual([expected, expected, stored, stored]);
      }
    }
    expect(usual).toBeGreaterThan(SEQUENCES * STEPS * 0.5);
  });
});
