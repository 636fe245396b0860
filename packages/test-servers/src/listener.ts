/** Finds the process that listens on a port, for servers without a command that identifies them. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { hasCode } from './system-error.js';

const LISTENING = '0A';

/** The numbers of the sockets that listen on this port, in any process, for IPv4 and IPv6. */
function socketsOn(port: number): readonly string[] {
  const ending = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const tables = ['/proc/net/tcp', '/proc/net/tcp6'].filter(existsSync);
  const rows = tables.flatMap((table) => readFileSync(table, 'utf8').split('\n').slice(1));
  return rows
    .map((row) => row.trim().split(/\s+/))
    .filter(([, local = '', , state]) => local.endsWith(ending) && state === LISTENING)
    .map((columns) => `socket:[${columns[9]}]`);
}

/** A file may be closed after it was listed. */
function linkOf(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ESRCH')) return undefined;
    throw error;
  }
}

export function listensOn(pid: number, port: number): boolean {
  if (!existsSync('/proc/net/tcp')) {
    const found = execFileSync('lsof', ['-nP', `-iTCP:${port}`, '-sTCP:LISTEN', '-t'], { encoding: 'utf8' });
    return found.split('\n').includes(String(pid));
  }
  const sockets = socketsOn(port);
  const files = readdirSync(`/proc/${pid}/fd`).map((name) => linkOf(`/proc/${pid}/fd/${name}`));
  return files.some((file) => file !== undefined && sockets.includes(file));
}
