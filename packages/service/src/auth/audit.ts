/**
 * What operators did, one JSON line each: evictions, and keys made or revoked. To a file, which is only ever appended
 * to and readable by its owner alone, or to the log. Never a secret: a key is named by its id.
 */
import { appendFileSync } from 'node:fs';
import { InvalidArgumentError } from 'holdfast';
import type { Logger } from 'pino';
import type { Bulletin } from '../bulletin.js';
import { wallMs } from '../clock.js';
import { reasonOf } from './key-file.js';

export type AuditEntry =
  | {
      readonly event: 'evict';
      readonly by: string;
      readonly key: string;
      /** How many lost the lock; null when the store did not answer, so that nobody knows. */
      readonly evicted: number | null;
      readonly requestId?: string;
    }
  | {
      readonly event: 'key-create' | 'key-revoke';
      readonly by: string;
      readonly id: string;
      readonly name: string;
      readonly rights: readonly string[];
    };

/** Throws when the entry cannot be kept. */
export type Audit = (entry: AuditEntry) => void;

/** A line is one write at the end of the file, so several processes may share it. */
export function auditFile(path: string): Audit {
  return (entry) => {
    const line = JSON.stringify({ at: new Date(wallMs()).toISOString(), ...entry });
    try {
      appendFileSync(path, `${line}\n`, { mode: 0o600 });
    } catch (error) {
      throw new InvalidArgumentError(`The audit log ${path} cannot be written: ${reasonOf(error)}.`, {
        cause: error,
      });
    }
  };
}

export function auditLog(log: Logger): Audit {
  return (entry) => log.info({ audit: entry }, 'audit');
}

/** Evictions through the service. One that cannot be written is in the log at least: the eviction has happened. */
export function auditEvictions(bulletin: Bulletin, audit: Audit, log: Logger): () => void {
  return bulletin.on('evicted', ({ key, count, principal, requestId }) => {
    const entry = { event: 'evict', by: principal, key, evicted: count, requestId } as const;
    try {
      audit(entry);
    } catch (error) {
      log.error({ audit: entry, error: reasonOf(error) }, 'the audit log cannot be written');
    }
  });
}
