/**
 * The audit log: evictions, and API keys that were created or revoked. An eviction has two entries: `evict` before it, so that
 * it is refused if the log cannot be written, and `evicted` with its outcome. No secrets: an API key is named by its id.
 */
import type { FastifyRequest } from 'fastify';
import type { Evict } from 'holdfast/protocol';
import type { Logger } from 'pino';
import type { ServiceEvents } from '../service-events.js';
import { Problem } from './problem.js';

/** The principal of an eviction, and its address. */
interface Asked {
  readonly by: string;
  /** The id of the API key, if one was used. */
  readonly keyId?: string;
  readonly address: string;
  readonly key: string;
  readonly requestId: string;
}

export type AuditEntry =
  | (Asked & {
      readonly event: 'evict';
      /** The lowest token to end, if the request had one. */
      readonly fromToken?: number;
      readonly upToToken: number;
      readonly reason?: string;
    })
  | (Asked & {
      readonly event: 'evicted';
      /** Evicted holders; null when the store did not answer, so the outcome is unknown. */
      readonly evicted: number | null;
    })
  | {
      readonly event: 'key-create' | 'key-revoke';
      readonly by: string;
      readonly id: string;
      readonly name: string;
      readonly rights: readonly string[];
    };

/** Writes an entry. Throws, or rejects, when that fails. */
export type Audit = (entry: AuditEntry) => void | Promise<void>;

/** Audit entries as lines of a log, at any log level. */
export function auditLog(log: Logger): Audit {
  const always = log.child({}, { level: 'info' });
  return (entry) => always.info({ audit: entry }, 'audit');
}

/** Called with the number of evicted holders; null when the store did not answer, so the outcome is unknown. */
export type NoteEvicted = (count: number | null) => void;

/**
 * Logs an eviction before it is done. Rejects with a `Problem` when that fails: then it must not be done. Resolves to a function
 * that logs the outcome and emits it.
 */
export async function auditEviction(
  { audit, log, events }: { readonly audit: Audit; readonly log: Logger; readonly events: ServiceEvents },
  { principal, note, ip, id: requestId }: FastifyRequest,
  { key, fromToken = 0, upToToken, reason = null }: Evict,
): Promise<NoteEvicted> {
  const { keyId } = note;
  const asked: Asked = { by: principal.id, ...(keyId && { keyId }), address: ip, key, requestId };
  try {
    await audit({
      event: 'evict',
      ...asked,
      ...(fromToken > 0 && { fromToken }),
      upToToken,
      ...(reason !== null && { reason }),
    });
  } catch (cause) {
    throw new Problem(
      'audit-unavailable',
      'The audit log cannot be written, so no holder was evicted. See the log of the service.',
      { key, cause },
    );
  }
  const noteOutcome = async (evicted: number | null): Promise<void> => {
    const entry = { event: 'evicted', ...asked, evicted } as const;
    try {
      await audit(entry);
    } catch (error) {
      log.error({ audit: entry, error: String(error) }, 'the audit log cannot be written');
    }
  };
  return (count) => {
    void noteOutcome(count);
    events.emit('evicted', {
      ...{ key, count, principal: principal.id, requestId },
      ...{ fromToken, upToToken, reason },
    });
  };
}
