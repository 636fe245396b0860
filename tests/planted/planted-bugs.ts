/**
 * Bugs planted in a copy of the built library, each an edit of its text. The text has to be found exactly once: when
 * the code changes, the plant breaks loudly instead of testing nothing.
 */

export interface Edit {
  /** In the built library. */
  readonly file: string;
  readonly find: string;
  readonly put: string;
}

export interface PlantedBug {
  readonly name: string;
  readonly profile: string;
  /** How many seeds may be needed until it shows. */
  readonly seeds: number;
  readonly edits: readonly Edit[];
  /** The kinds of violation that give it away. */
  readonly shows: readonly string[];
}

const HOLD = 'lease/hold.js';
const HANDOVER = 'lease/local-handover.js';
const LEASE = 'lease/lease.js';
const KEY_QUEUE = 'queue/key-queue.js';
const BACKGROUND_RELEASES = 'store-client/background-releases.js';
const CONTENDER = 'queue/contender.js';
const RETRIED_COMMAND = 'store-client/retried-command.js';
const DECIDE = 'protocol/decide.js';
const WAITERS = 'protocol/waiters.js';

/** So that blocks run out within a simulated minute; harmless by itself. */
const SMALL_BLOCKS: Edit = {
  file: 'protocol/constants.js',
  find: 'TOKEN_BLOCK = 1_024',
  put: 'TOKEN_BLOCK = 4',
};

const BLOCKS_OF_OLDER_ANSWERS: readonly Edit[] = [
  {
    file: RETRIED_COMMAND,
    find: 'answered(reply, sent) {\n        this.unanswered -= 1;\n        if (!this.open)',
    put: "answered(reply, sent) {\n        this.unanswered -= 1;\n        if (!this.open && this.command.kind !== 'renew')",
  },
  { file: HOLD, find: 'if (block && block.token >= this.nextToken)', put: 'if (block)' },
];

export const HARMLESS: PlantedBug = {
  name: 'blocks of four tokens',
  profile: 'busy',
  seeds: 2,
  edits: [SMALL_BLOCKS],
  shows: [],
};

export const PLANTED_BUGS: readonly PlantedBug[] = [
  {
    name: 'F26: the deadline of a repeated grant counts the ttl asked for',
    profile: 'mixed',
    seeds: 8,
    edits: [
      {
        file: HOLD,
        find: 'this.expiresAt = reply.expiresAt;\n        const certainMs = certainMsOf(reply);',
        put:
          'this.expiresAt = reply.expiresAt;\n' +
          'const certainMs = certainMsOf({ now: 0, expiresAt: request.ttlMs });',
      },
    ],
    shows: ['outlived', 'overlap'],
  },
  {
    name: 'F2: the deadline counts from the reply',
    profile: 'cut-off',
    seeds: 8,
    edits: [
      {
        file: HOLD,
        find: 'this.#deadlineMs = sent.monotonicMs + certainMs;\n        this.#deadlineWallMs = sent.wallMs + certainMs;\n        this.nextToken',
        put:
          'const { clock } = this.client;' +
          'this.#deadlineMs = clock.monotonicMs() + certainMs;' +
          'this.#deadlineWallMs = clock.wallMs() + certainMs;\n        this.nextToken',
      },
    ],
    shows: ['outlived', 'overlap'],
  },
  {
    name: 'F2: the margin of a stretched lease is that of its ttl',
    profile: 'cut-off',
    seeds: 8,
    edits: [
      {
        file: HOLD,
        find: 'const certainMs = certainMsOf(reply);\n        const deadlineMs',
        put: 'const certainMs = reply.expiresAt - reply.now - this.request.ttlMs * 0.01 - 5;\n        const deadlineMs',
      },
    ],
    shows: ['outlived', 'overlap'],
  },
  {
    name: 'F1: held does not read the clocks',
    profile: 'shared',
    seeds: 8,
    edits: [{ file: LEASE, find: 'if (this.#hold.remainingMs > 0)', put: 'if (!this.#hold.ended)' }],
    shows: ['outlived', 'overlap'],
  },
  {
    name: 'F1: a suspended machine is not noticed',
    profile: 'shared',
    seeds: 8,
    edits: [
      {
        file: HOLD,
        find: ', wallMs - clock.wallMs())',
        put: ')',
      },
    ],
    shows: ['outlived', 'overlap'],
  },
  {
    name: 'F3: nothing but an answer ends a lease',
    profile: 'cut-off',
    seeds: 8,
    edits: [
      {
        file: HOLD,
        find: 'if (remainingMs === 0) {\n            this.loseAtEnd();\n            return;\n        }',
        put: 'if (remainingMs === 0) return;',
      },
      {
        file: HOLD,
        find: 'const { user, request } = this;\n        if (this.remainingMs === 0)',
        put: 'const { user, request } = this;\n        if (false)',
      },
    ],
    shows: ['no signal'],
  },
  {
    name: 'F29: a hold passes on after its deadline',
    profile: 'busy',
    seeds: 8,
    edits: [
      { file: HANDOVER, find: 'hold.remainingMs >= hold.request.ttlMs / 2 && ', put: '' },
      {
        file: LEASE,
        find: 'if (!this.held)\n            return this.#released',
        put: "if (this.#state !== 'held')\n            return this.#released",
      },
    ],
    shows: ['stale at once', 'outlived', 'overlap'],
  },
  {
    name: 'F29: a hold passes on after its eviction was heard of',
    profile: 'evictions',
    seeds: 8,
    edits: [{ file: HANDOVER, find: 'isFresh && !hold.suspect', put: 'isFresh' }],
    shows: ['begun after eviction'],
  },
  {
    name: 'a lower block of tokens is used after a higher one',
    profile: 'busy',
    seeds: 8,
    edits: [SMALL_BLOCKS, ...BLOCKS_OF_OLDER_ANSWERS],
    shows: ['token order', 'token twice'],
  },
  {
    name: 'F32: a wake-up that comes while a claim is under way is forgotten',
    profile: 'quiet',
    seeds: 8,
    edits: [{ file: CONTENDER, find: 'this.#isWoken = true;', put: ';' }],
    shows: ['idle'],
  },
  {
    name: 'F5: a claim given up is not withdrawn',
    profile: 'quiet',
    seeds: 8,
    edits: [
      {
        file: BACKGROUND_RELEASES,
        find: 'withdraw(key, hold, ttlMs, lifeMs = ttlMs) {',
        put: 'withdraw(key, hold, ttlMs, lifeMs = ttlMs) { return;',
      },
    ],
    shows: ['orphan', 'idle', 'holds left'],
  },
  {
    name: 'F19: a caller that gives up takes the place in the queue with it',
    profile: 'quiet',
    seeds: 8,
    edits: [
      {
        file: KEY_QUEUE,
        find: 'onGone(waiter, outcome) {\n        this.#leave(waiter, outcome);',
        put: 'onGone(waiter, outcome) {\n        this.#leave(waiter, outcome); this.#contender?.retire(); this.#contender = null;',
      },
    ],
    shows: ['place lost'],
  },
  {
    name: 'F32: a busy process keeps the key to itself',
    profile: 'busy',
    seeds: 8,
    edits: [{ file: HANDOVER, find: 'if (isTurnOfOthers(hold))', put: 'if (false)' }],
    shows: ['long wait'],
  },
  {
    name: 'F19: newcomers overtake the line',
    profile: 'mixed',
    seeds: 8,
    edits: [
      { file: WAITERS, find: 'if (waiter.wokenAt === null)\n            return false;', put: 'continue;' },
    ],
    shows: ['overtaken'],
  },
  {
    name: 'F28: a late renewal shortens a longer one',
    profile: 'cut-off',
    seeds: 16,
    edits: [
      {
        file: DECIDE,
        find: 'expiresAt = Math.max(expiresAt, now + command.ttlMs);',
        put: 'expiresAt = now + command.ttlMs;',
      },
    ],
    shows: ['expiry moved back'],
  },
  {
    name: 'F27: a withdrawal that overtakes its claim leaves no mark',
    profile: 'quiet',
    seeds: 8,
    edits: [
      {
        file: DECIDE,
        find: 'markEnded(draft, holder?.hold ?? hold, now);\n    if (holder)',
        put: 'if (holder) markEnded(draft, hold, now);\n    if (holder)',
      },
    ],
    shows: ['granted after its end'],
  },
  {
    name: 'F29: a handoff releases what it hands off',
    profile: 'handoffs',
    seeds: 8,
    edits: [
      {
        file: LEASE,
        find: 'owner.drop(hold);',
        put: 'owner.drop(hold);\n        hold.client.releases.withdraw(request.key, hold.id, request.ttlMs);',
      },
    ],
    shows: ['released while held', 'overlap'],
  },
  {
    name: 'F29: a process that handed a lease off goes on with it',
    profile: 'handoffs',
    seeds: 8,
    edits: [
      {
        file: LEASE,
        find: "this.#end('handed-off');\n        owner.drop(hold);",
        put: '',
      },
    ],
    shows: ['overlap', 'released while held'],
  },
  {
    name: 'maxHold counts again from every renewal',
    profile: 'limits',
    seeds: 4,
    edits: [
      {
        file: HOLD,
        find: 'this.#extend(reply, sent);',
        put: 'this.#extend(reply, sent); if (this.#limit) this.limitTo(this.request.maxHoldMs);',
      },
    ],
    shows: ['outlived its maxHold'],
  },
  {
    name: 'maxHold stands still while the machine is suspended',
    profile: 'limits',
    seeds: 8,
    edits: [
      {
        file: HOLD,
        find: ', this.#leftMs(limit.monotonicMs, limit.wallMs)',
        put: ', limit.monotonicMs - this.client.clock.monotonicMs()',
      },
    ],
    shows: ['outlived its maxHold'],
  },
  {
    name: 'the limit of one lease stays with the hold when it passes to the next',
    profile: 'limits',
    seeds: 4,
    edits: [
      {
        file: LEASE,
        find: 'if (maxHoldMs !== Number.POSITIVE_INFINITY)',
        put: 'if (maxHoldMs !== Number.POSITIVE_INFINITY && hold.nextToken % 1_024 === 1)',
      },
    ],
    shows: ['outlived its maxHold'],
  },
  {
    name: 'a lease that expired says that it was evicted',
    profile: 'limits',
    seeds: 4,
    edits: [{ file: HOLD, find: "DEADLINE = { reason: 'deadline'", put: "DEADLINE = { reason: 'evicted'" }],
    shows: ['wrong reason'],
  },
  {
    name: 'an eviction is taken for a record that was deleted',
    profile: 'limits',
    seeds: 8,
    edits: [
      {
        file: HOLD,
        find: "if (reply.kind === 'lost' && reply.evicted)\n            return evictedBy(reply.evicted.reason);",
        put: '',
      },
      { file: HOLD, find: 'return this.suspect ? evictedBy(null) : REPLACED;', put: 'return REPLACED;' },
    ],
    shows: ['wrong reason'],
  },
  {
    name: 'the end of inner work ends the lease of the outer work',
    profile: 'limits',
    seeds: 2,
    edits: [
      {
        file: 'primitives/with-lock.js',
        find: 'const result = await work(lease);',
        put: 'const result = await work(lease); await releaseQuietly(lease);',
      },
      { file: 'primitives/with-lock.js', find: 'leaseWith(lease, { release, ', put: 'leaseWith(lease, { ' },
    ],
    shows: ['ended by inner work'],
  },
];
