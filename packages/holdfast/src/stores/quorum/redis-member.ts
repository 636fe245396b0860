/**
 * A Redis server as a member.
 *
 *   PREFIX key: KEY   hash: p promised ballot, a accepted ballot, f '1' where nobody holds the lock, v the state as JSON
 *   PREFIX member     hash: the enrolment: seat (id of the quorum, place in it, number of its servers), run id of the server
 *
 * Every request is one script, so it is atomic on its server. It first checks the enrolment: a server that was restarted
 * may have lost promises, even if it loaded an older snapshot, so the run id must be the one enrolled. Whether it wrote
 * every change to disk before it answered cannot be told afterwards, so every restarted server is enrolled again.
 *
 * Records expire by the server's clock, which must not be set forward while the server votes.
 */
import { NotExecutedError } from '../../protocol/index.js';
import { listOf, numberOf, textOf } from '../redis/codec.js';
import type { Connection, Server } from '../redis/connection.js';
import { scriptRunner } from '../redis/script.js';
import type { Greeting, Member, MemberReply, Refusal, Request, Seat } from './member.js';

const HEAD_LUA = `
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local stamp = time[1] .. '.' .. string.format('%06d', time[2])
local enrolled = redis.call('HMGET', KEYS[1], 'seat', 'run')
local info = redis.call('INFO', 'server')
`;

const RUN_LUA = `
local run = string.match(info, 'run_id:(%w+)')
`;

const GREET_LUA = `${HEAD_LUA}${RUN_LUA}
return { stamp, enrolled[1] or '', enrolled[2] or '', run }
`;

/** Before the run id in the enrolment of a server that has a seat, but no vote yet. */
const NOTED = 'noted:';

/** ARGV: seat, what comes before the run id, the enrolment before. Returns the one now, or '' if it had changed. */
const ENROL_LUA = `${HEAD_LUA}${RUN_LUA}
if (enrolled[1] or '') .. ' ' .. (enrolled[2] or '') ~= ARGV[3] then return '' end
redis.call('HSET', KEYS[1], 'seat', ARGV[1], 'run', ARGV[2] .. run)
return ARGV[1] .. ' ' .. ARGV[2] .. run
`;

/**
 * KEYS: enrolment, record. ARGV: seat, kind, ballot, until, keepMs; when, or next, f and v. Where a value is accepted, the
 * answer has no more than that. A plain search for the run id takes a tenth of the time of a pattern.
 */
const ASK_LUA = `${HEAD_LUA}
if enrolled[1] ~= ARGV[1] or not string.find(info, 'run_id:' .. enrolled[2] .. '\\r', 1, true) then
  return { stamp, 'refused' }
end
local kind, ballot = ARGV[2], ARGV[3]
local record
if kind == 'accept' then
  record = redis.call('HMGET', KEYS[2], 'p', 'a')
else
  record = redis.call('HMGET', KEYS[2], 'p', 'a', 'f', 'v')
end
local promised, accepted, free, value = record[1] or '', record[2] or '', record[3], record[4] or ''
local kept = math.max(redis.call('PTTL', KEYS[2]), 0)

local function isBelow(one, other)
  if one == other then return false end
  if one == '' or other == '' then return one == '' end
  local count, proposer = string.match(one, '^(%d+)%.(%d+)$')
  local otherCount, otherProposer = string.match(other, '^(%d+)%.(%d+)$')
  if count == otherCount then return tonumber(proposer) < tonumber(otherProposer) end
  return tonumber(count) < tonumber(otherCount)
end

local done = 0
if kind ~= 'peek' and now <= tonumber(ARGV[4]) then
  if kind == 'prepare' then
    local when = ARGV[6]
    local isMeant = when == 'always' or when == 'is:' .. accepted or (accepted ~= '' and free == '1')
    if isMeant and isBelow(promised, ballot) then
      redis.call('HSET', KEYS[2], 'p', ballot)
      done = 1
    end
  elseif accepted == ballot then
    done = 1
  elseif not isBelow(ballot, promised) then
    redis.call('HSET', KEYS[2], 'p', ARGV[6] == '' and ballot or ARGV[6], 'a', ballot, 'f', ARGV[7], 'v', ARGV[8])
    done = 1
  end
  if done == 1 and tonumber(ARGV[5]) > kept then redis.call('PEXPIRE', KEYS[2], ARGV[5]) end
end
if kind == 'accept' then return done == 1 and { stamp, 1 } or { stamp, 0, promised, accepted, '', '0' } end
return { stamp, done, promised, accepted, value, tostring(kept) }
`;

/** Requests and wake-ups without an answer, of one store. */
const UNANSWERED_MAX = 1_000;

interface FullGreeting extends Greeting {
  readonly enrolled: string;
  /** The seat was noted, and the server has not voted since. */
  readonly isNoted: boolean;
  /** The enrolment as it is, to be compared when it is changed. */
  readonly before: string;
  /** The run id of the server. Databases of one server have the same. */
  readonly run: string;
}

export interface RedisMemberParts {
  readonly connection: Connection;
  readonly prefix: string;
  readonly name: string;
}

export class RedisMember implements Member {
  readonly name: string;
  readonly connection: Connection;
  readonly #prefix: string;
  readonly #greet: ReturnType<typeof scriptRunner>;
  readonly #ask: ReturnType<typeof scriptRunner>;
  readonly #enrol: ReturnType<typeof scriptRunner>;
  #unanswered = 0;

  constructor({ connection, prefix, name }: RedisMemberParts) {
    this.name = name;
    this.connection = connection;
    this.#prefix = prefix;
    this.#greet = scriptRunner(connection, GREET_LUA);
    this.#ask = scriptRunner(connection, ASK_LUA);
    this.#enrol = scriptRunner(connection, ENROL_LUA);
  }

  /** The prefix of the records in Redis. */
  get keyPrefix(): string {
    return `${this.connection.keyPrefix}${this.#prefix}key:`;
  }

  get enrolmentKey(): string {
    return `${this.connection.keyPrefix}${this.#prefix}member`;
  }

  channelOf(inbox: string): string {
    return `${this.connection.keyPrefix}${this.#prefix}inbox:${inbox}`;
  }

  /** A server that is not connected now carries no wake-up: its client would queue it and send it late. */
  async publish(inbox: string, text: string): Promise<void> {
    if (this.connection.offlineGuard?.isReady === false || this.#unanswered >= UNANSWERED_MAX) return;
    await this.#counted(async () => (await this.server()).send('PUBLISH', this.channelOf(inbox), text));
  }

  async ask(request: Request, seat: Seat): Promise<MemberReply | Refusal> {
    this.connection.checkUsable();
    const keys = [`${this.#prefix}member`, `${this.#prefix}key:${request.key}`];
    const { offlineGuard } = this.connection;
    const breaks = offlineGuard?.breaks;
    const answer = await this.#counted(() => this.#ask(keys, [seatText(seat), ...textsOf(request)]));
    // Clients send a request again when the connection broke.
    const isOnce = breaks !== undefined && offlineGuard?.breaks === breaks;
    const [stamp, done, promised = '', accepted = '', value = '', keptMs = 0] = listOf(answer);
    if (textOf(done) === 'refused') return { isRefused: true, isOnce };
    return {
      time: Number(textOf(stamp)) * 1_000,
      isDone: numberOf(done) === 1,
      promised: textOf(promised),
      accepted: textOf(accepted),
      value: textOf(value),
      keptMs: numberOf(keptMs),
      isOnce,
    };
  }

  /** Notes the seat; with `isVoting`, the server votes from now on. The enrolment now, or '' if it was not `before`. */
  async enrol(seat: Seat, isVoting: boolean, before: string): Promise<string> {
    const texts = [seatText(seat), isVoting ? '' : NOTED, before];
    return textOf(await this.#enrol([`${this.#prefix}member`], texts));
  }

  async server(): Promise<Server> {
    const [server] = await this.connection.servers();
    if (!server) throw new Error('The client knows no server.');
    return server;
  }

  /** With the enrolment as it is stored, whether it still counts or not. */
  async greet(): Promise<FullGreeting> {
    this.connection.checkUsable();
    const [stamp, seat = '', runBefore, run = ''] = listOf(
      await this.#counted(() => this.#greet([`${this.#prefix}member`], [])),
    ).map(textOf);
    const [quorum = '', place, size] = seat.split(' ');
    const isEnrolled = quorum !== '';
    const isCurrent = isEnrolled && runBefore === run;
    const isNoted = isEnrolled && runBefore === `${NOTED}${run}`;
    return {
      time: Number(stamp) * 1_000,
      quorum: isCurrent ? quorum : null,
      place: Number(place),
      size: Number(size),
      reason: isCurrent ? '' : isEnrolled && !isNoted ? RESTARTED : NOT_ENROLLED,
      enrolled: quorum,
      isNoted,
      before: `${seat} ${runBefore}`,
      run,
    };
  }

  /** A server that hangs gets no more requests than this: they would fill the memory. */
  async #counted<T>(send: () => Promise<T>): Promise<T> {
    if (this.#unanswered >= UNANSWERED_MAX) {
      throw new NotExecutedError(`it has not answered ${this.#unanswered} requests`, 'while-waiting');
    }
    this.#unanswered += 1;
    try {
      return await send();
    } finally {
      this.#unanswered -= 1;
    }
  }
}

const NOT_ENROLLED =
  'not enrolled in a quorum, or without its data. Enrol it: "holdfast migrate", or enrolMembers of holdfast/quorum';
const RESTARTED =
  'restarted since it was enrolled, and perhaps without its last changes. Enrol it again: "holdfast migrate", or ' +
  'enrolMembers of holdfast/quorum';

function seatText({ quorum, place, size }: Seat): string {
  return `${quorum} ${place} ${size}`;
}

function textsOf(request: Request): readonly string[] {
  if (request.kind === 'peek') return ['peek'];
  const { kind, ballot, until, keepMs } = request;
  const first = [kind, ballot, String(Math.floor(until)), String(keepMs)];
  if (kind === 'accept') return [...first, request.next, request.isFree ? '1' : '0', request.value];
  const { when } = request;
  return [...first, typeof when === 'string' ? when : `is:${when.accepted}`];
}
