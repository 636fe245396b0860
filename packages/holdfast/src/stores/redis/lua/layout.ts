/**
 * The stored layout, and the names that the Lua texts use for its positions and for constants. Names are replaced by
 * numbers before the script is sent, because Lua would look each of them up in every call.
 *
 * A record is nested lists, stored as one MessagePack string, where integers stay exact (cjson would cut them to
 * fourteen digits), or in the short form of record.ts where possible:
 *
 *   record   { version, token, decision, holders, rests, waiters, ended, evictions where there are any }
 *   holder   { process, number, owner, permits, capacity, expiresAt, inbox, token, acquiredAt, metadata }
 *   rest     the same without process, number, inbox and metadata, which are false
 *   waiter   { process, number, owner, permits, capacity, expiresAt, inbox, since, wokenAt }
 *   mark     { process, number, until }
 *   eviction { process, number, until, reason }
 *
 * Null of TypeScript is false here: a nil would end a list. The position of the version never changes.
 */
import {
  EVICTION_MS,
  EVICTIONS_MAX,
  HOLDERS_SHOWN,
  KEEP_MS,
  MARKS_MAX,
  NAME_AGAIN_MS,
  QUEUE_MAX,
  STATE_VERSION,
  TOKEN_BLOCK,
  WAITER_LIFE_MS,
  WAITER_REFRESH_MS,
  WINDOW_HINT_MS,
  WINDOW_MS,
} from '../../../protocol/index.js';

/** The first item of an answer. */
export const ANSWER = {
  FAILED: 0,
  GRANTED: 1,
  BUSY: 2,
  WITHDRAWN: 3,
  RENEWED: 4,
  LOST: 5,
  RELEASED: 6,
  EVICTED: 7,
  RECORD: 8,
  OTHER_VERSION: 9,
  FOREIGN: 10,
} as const;

const POSITIONS = {
  VERSION: 1,
  RECORD_TOKEN: 2,
  DECISION: 3,
  HOLDERS: 4,
  RESTS: 5,
  WAITERS: 6,
  ENDED: 7,
  EVICTIONS: 8,
  PROCESS: 1,
  NUMBER: 2,
  OWNER: 3,
  PERMITS: 4,
  CAPACITY: 5,
  EXPIRES_AT: 6,
  INBOX: 7,
  TOKEN: 8,
  SINCE: 8,
  ACQUIRED_AT: 9,
  WOKEN_AT: 9,
  METADATA: 10,
  UNTIL: 3,
  REASON: 4,
} as const;

/** The first byte of a short record. No MessagePack begins with it. */
const SHORT = 0xc1;

/** The parts of a short record, in formats of Lua's `struct`: integers of eight bytes, texts after their length. */
const FORMATS = {
  /** SHORT, version, whether there is a holder, token, decision. */
  HEADER: '>BBBI8I8',
  /** Number, permits, capacity, expiresAt, token, acquiredAt, process, owner, inbox, metadata. */
  HOLDER: '>I8I8I8I8I8I8I2c0I2c0I2c0I2c0',
  /** HEADER, its first three bytes as one number. */
  FREE: '>I3I8I8',
  /** FREE and HOLDER. */
  HELD: '>I3I8I8I8I8I8I8I8I8I2c0I2c0I2c0I2c0',
  /** Until, number, process; repeated. */
  MARK: '>I8I8I2c0',
  /** FREE, number, AMOUNTS, expiresAt, token, acquiredAt, TEXTS, marks. */
  CLAIMED: '>I3I8I8I8c16I8I8I8c0c0',
  /** Permits and capacity. */
  AMOUNTS: '>I8I8',
  ONE_OF_ONE: '\\0\\0\\0\\0\\0\\0\\0\\1'.repeat(2),
  /** Process, owner, inbox, metadata. */
  TEXTS: '>I2c0I2c0I2c0I2c0',
  /** FREE, marks, MARK. */
  RELEASED_RECORD: '>I3I8I8c0I8I8I2c0',
} as const;

/** The letter of each command, and the patterns of its terms. See encoder.ts. */
export const COMMANDS = {
  CLAIM: 'C'.charCodeAt(0),
  ONE: 'O'.charCodeAt(0),
  ONE_QUEUED: 'Q'.charCodeAt(0),
  RENEW: 'N'.charCodeAt(0),
  RELEASE: 'R'.charCodeAt(0),
  RELEASE_LATER: 'M'.charCodeAt(0),
  EVICT: 'E'.charCodeAt(0),
  READ: 'L'.charCodeAt(0),
} as const;

const PATTERNS = {
  /** Permits, capacity, ttl, whether to queue, the lengths of process, owner and inbox, and where those begin. */
  CLAIM_TEXT: '^(%d+) (%d+) (%d+) (%d) (%d+) (%d+) (%d+) ()',
  /** Ttl, whether a block is wanted, the addition, the expiry it extends or -1, process. */
  RENEW_TEXT: '^(%d+) (%d) (%-?%d+) (%S+) (.*)$',
  /** MinHold, process. */
  RELEASE_TEXT: '^(%d+) (.*)$',
  /** The first and the last token, reason. */
  EVICT_TEXT: '^(%d+) (%d+) (.*)$',
} as const;

/** A usual answer is a decision's distance from the time, and as many times this as the token's. */
export const BEYOND_MAX = 2 ** 20;

const NAMES: Readonly<Record<string, number | string>> = {
  ...ANSWER,
  ...POSITIONS,
  ...FORMATS,
  ...COMMANDS,
  ...PATTERNS,
  BEYOND_MAX,
  SHORT,
  FREE_FORM: SHORT * 2 ** 16 + STATE_VERSION * 2 ** 8,
  HELD_FORM: SHORT * 2 ** 16 + STATE_VERSION * 2 ** 8 + 1,
  /** A record with longer texts is not short. */
  SHORT_MAX: 4_096,
  /** Below it there is room for one more mark: each is at least 18 bytes. */
  MARKS_BYTES_MAX: (MARKS_MAX - 1) * 18,
  EVICTION_MS,
  EVICTIONS_MAX,
  HOLDERS_SHOWN,
  KEEP_MS,
  /** How long a record without holders is kept: beyond the millisecond of its last decision. */
  KEPT_MS: KEEP_MS + 1,
  MARKS_MAX,
  MAX_SAFE: Number.MAX_SAFE_INTEGER,
  NAME_AGAIN_MS,
  QUEUE_MAX,
  STATE_VERSION,
  TOKEN_BLOCK,
  WAITER_LIFE_MS,
  WAITER_REFRESH_MS,
  WINDOW_HINT_MS,
  WINDOW_MS,
};

/** The text that is sent: names replaced, comments and indentation removed. The published texts have neither. */
export function compiled(lua: string): string {
  return lua
    .replaceAll(/^\s*--.*\n/gm, '')
    .replaceAll(/^\s+/gm, '')
    .replaceAll(/\b[A-Z][A-Z_]+\b/g, (name) => String(NAMES[name] ?? name));
}
