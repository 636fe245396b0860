/** The audit log as a file: one JSON line per entry, append-only, readable by its owner alone. */
import { closeSync, constants, openSync, writeFileSync } from 'node:fs';
import { InvalidArgumentError } from 'holdfast';
import { wallMs } from '../clock.js';
import type { Audit } from '../http/audit.js';
import { reasonOf } from './api-key-file.js';

/** A service checks at its start, instead of with the first eviction, that its audit log can be written. */
export function checkAuditFile(path: string): void {
  append(path, '');
}

/**
 * A line is one write at the end of the file, so several processes may share it. The file is opened for every line: it
 * may be rotated.
 */
export function auditFile(path: string): Audit {
  return (entry) => append(path, `${JSON.stringify({ at: new Date(wallMs()).toISOString(), ...entry })}\n`);
}

function append(path: string, text: string): void {
  try {
    const { O_WRONLY, O_APPEND, O_CREAT, O_NONBLOCK } = constants;
    // Opening a pipe without a reader, such as /dev/stdout, fails: waiting for a reader would stop the whole service.
    const fd = openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK, 0o600);
    try {
      writeFileSync(fd, text);
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    throw new InvalidArgumentError(`The audit log ${path} cannot be written: ${reasonOf(error)}.`, {
      cause: error,
    });
  }
}
