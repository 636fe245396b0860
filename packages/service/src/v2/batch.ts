/** POST /v2/batch: the store's own commands, for the library's `httpStore`. Permission is checked key by key. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import {
  type Command,
  checkOwner,
  checkReason,
  type Evict,
  type Release,
  type Reply,
} from 'holdfast/protocol';
import { monotonicMs, wallMs } from '../clock.js';
import { auditEviction, type NoteEvicted } from '../http/audit.js';
import type { Principal } from '../http/principal.js';
import { Problem, type ProblemBody, problemOf } from '../http/problem.js';
import type { ServiceParts } from '../http/service-parts.js';
import { ref } from '../openapi/schema.js';
import { holdText } from '../waiting/holds.js';
import { batchSchemas } from './batch-schemas.js';
import { checkMetadataText, checkStoredKey, namespaceOfKey } from './names.js';
import { noteRelease } from './renew-release-evict.js';
import { described } from './schemas.js';

type Answer = Reply | { readonly problem: ProblemBody };

/** A command with its problem, or with functions to call after its reply. */
interface Entry {
  readonly command: Command;
  readonly problem?: Problem;
  readonly finish?: (() => void) | undefined;
  readonly noteEvicted?: NoteEvicted;
}

/** This many commands count as one request. */
const COMMANDS_A_REQUEST = 50;
/** The limit of the holders' metadata in one response, because it is only for people. */
const METADATA_BYTES_MAX = 1_000_000;

export function batchRoute(app: FastifyInstance, parts: ServiceParts): void {
  for (const schema of batchSchemas(parts.limits)) app.addSchema(schema);
  app.route<{ Body: { readonly commands: readonly Command[] } }>({
    method: 'POST',
    url: '/v2/batch',
    bodyLimit: parts.limits.batchBytes,
    config: { needs: 'lock', scope: () => null, counts: 'command' },
    schema: described({
      operationId: 'batch',
      summary: 'Send commands of the store protocol, each answered on its own',
      tags: ['Store protocol'],
      body: ref('BatchRequest'),
      response: { 200: ref('BatchReplies') },
    }),
    // The kind of a reply is known, so the serializer need not try schemas.
    serializerCompiler: () => JSON.stringify,
    handler: async (request) => {
      const { commands } = request.body;
      request.note.secrets = commands.flatMap((command) => ('hold' in command ? [command.hold.process] : []));
      return { replies: bounded(await answersTo(parts, request, commands)) };
    },
  });
}

async function answersTo(
  parts: ServiceParts,
  request: FastifyRequest,
  commands: readonly Command[],
): Promise<readonly Answer[]> {
  const refusal = refusalOf(request, commands);
  const entries = await Promise.all(
    commands.map((command) => {
      if (refusal && isLimited(command)) return { command, problem: refusal };
      return entryOf(parts, request, command);
    }),
  );
  const allowed = entries.filter(({ problem }) => !problem).map(({ command }) => command);
  const replies = parts.client.attempt(allowed).values();
  let inVain = 0;
  const answers = await Promise.all(
    entries.map(async (entry) => {
      const attempt = entry.problem ? undefined : replies.next().value;
      const answer = await answerOf(parts, request, entry, attempt);
      if (!isLimited(entry.command) && isInVain(answer)) inVain += 1;
      return answer;
    }),
  );
  request.principal.spend?.(inVain / COMMANDS_A_REQUEST);
  return answers;
}

/** Renewals and releases are never limited. */
function isLimited({ kind }: Command): boolean {
  return kind === 'claim' || kind === 'evict';
}

/** The problem of all limited commands, if there is one. */
function refusalOf({ principal }: FastifyRequest, commands: readonly Command[]): Problem | null {
  const limited = commands.filter(isLimited);
  if (limited.length === 0) return null;
  try {
    principal.request?.();
    principal.spend?.(Math.floor(limited.length / COMMANDS_A_REQUEST));
    return null;
  } catch (error) {
    return problemOf(error);
  }
}

/** A renewal or a release that was refused, or whose lock was not held. */
function isInVain(answer: Answer): boolean {
  if ('problem' in answer) return answer.problem.status < 500;
  return answer.kind === 'lost' || (answer.kind === 'released' && !answer.held);
}

/** Beyond the limit, holders are shown without metadata. */
function bounded(answers: readonly Answer[]): readonly Answer[] {
  let bytes = 0;
  return answers.map((answer) => {
    if ('problem' in answer || answer.kind !== 'busy') return answer;
    for (const { metadata } of answer.holders) bytes += Buffer.byteLength(metadata ?? '');
    if (bytes <= METADATA_BYTES_MAX) return answer;
    return { ...answer, holders: answer.holders.map((holder) => ({ ...holder, metadata: null })) };
  });
}

async function entryOf(parts: ServiceParts, request: FastifyRequest, given: Command): Promise<Entry> {
  const { principal } = request;
  const command = given.kind === 'release' ? bearable(given, principal) : given;
  try {
    const key = checkStoredKey(command.key);
    const role = isForAdmins(command) ? 'admin' : 'lock';
    const namespace = namespaceOfKey(key);
    if (!request.may(role, namespace)) {
      throw new Problem('forbidden', `${request.principal.id} has no right "${role}" on "${namespace}".`, {
        key,
      });
    }
    if (command.kind === 'evict') {
      // The schema counts characters, and the limit is in bytes.
      if (typeof command.reason === 'string') checkReason(command.reason);
      return { command, noteEvicted: await auditEviction(parts, request, command) };
    }
    principal.checkTtl?.(key, lifeOf(command));
    if (command.kind !== 'claim') return { command };
    const shared = command.permits < command.capacity;
    const undertaking = { key, waitMs: 0, hold: holdText(command.hold), shared };
    // Every reader of the lock sees them, so the library's rules apply to other clients, too.
    checkOwner(command.owner);
    if (command.metadata !== null) checkMetadataText(command.metadata);
    return { command, finish: await principal.undertake?.(undertaking, parts.client.tokensOf) };
  } catch (error) {
    return { command, problem: problemOf(error) };
  }
}

type HoldCommand = Exclude<Command, Evict>;

/**
 * A `minHold` keeps the lock like a ttl does, so the same limit applies. The library sends it only with the release. A
 * refused release would leave the lock held until its ttl is over, so the `minHold` is cut to the limit.
 */
function bearable(release: Release, { ttlMsMax = Number.POSITIVE_INFINITY }: Principal): Release {
  return release.minHoldMs > ttlMsMax ? { ...release, minHoldMs: ttlMsMax } : release;
}

/** How long the command keeps the lock from now on, for the limits of its principal. */
function lifeOf(command: HoldCommand): number {
  if (command.kind === 'release') return command.minHoldMs;
  if (command.kind === 'claim' || !command.added) return command.ttlMs;
  return Math.max(command.added.expiresAt - wallMs(), 0) + command.added.ms;
}

/** Only admins may use holds of `/v1`, which are derived from a client's identity: they could be another client's. */
function isForAdmins(command: Command): boolean {
  return command.kind === 'evict' || command.hold.process.startsWith('v1:');
}

/** One attempt: the library sends the command again by itself, with the same hold. */
async function answerOf(
  parts: ServiceParts,
  request: FastifyRequest,
  { command, problem, finish, noteEvicted }: Entry,
  attempt: Promise<Reply> | undefined,
): Promise<Answer> {
  if (problem) return { problem: problem.body };
  const { key } = command;
  const sentMs = monotonicMs();
  try {
    const reply = await attempt;
    if (!reply) throw new TypeError('A command has no reply.');
    if (command.kind !== 'evict') noteHold(parts, request, command, reply, sentMs);
    if (reply.kind === 'evicted') noteEvicted?.(reply.count);
    if (reply.kind !== 'busy' || reply.position !== null) parts.events.emit('touched', { key });
    return reply;
  } catch (error) {
    noteEvicted?.(null);
    return { problem: problemOf(error).body };
  } finally {
    finish?.();
  }
}

/** Notes the outcome for the limits of the principal, and for events. */
function noteHold(
  { holds }: ServiceParts,
  { principal }: FastifyRequest,
  command: HoldCommand,
  reply: Reply,
  sentMs: number,
): void {
  const { key } = command;
  const hold = holdText(command.hold);
  if (command.kind === 'claim') holds.claimed(command, reply, sentMs);
  switch (reply.kind) {
    case 'granted':
      // The store's expiry: neither a repeated grant nor a renewal shortens the lease.
      principal.holds?.(key, hold, reply.expiresAt - reply.now, reply.token);
      return;
    case 'renewed':
      principal.holds?.(key, hold, reply.expiresAt - reply.now);
      holds.held(key, hold);
      return;
    case 'released':
      noteRelease(principal, key, hold, reply.held ? lifeOf(command) : 0);
      holds.withdrawn(key, hold, reply.held);
      return;
    default:
      principal.holds?.(key, hold, 0);
      if (reply.kind === 'lost') holds.lost(key, hold);
  }
}
