/** PgBouncer in front of every database of a PostgreSQL. It asks for no password. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { need } from './install.js';
import { queryOnce } from './postgres/databases.js';
import { type Controls, supervise } from './supervise.js';
import { giveTo, unprivileged } from './unprivileged.js';

export interface PgbouncerOptions {
  /** The URL of a database. The returned URL leads to the same database. */
  readonly target: string;
  readonly mode?: 'transaction' | 'session' | 'statement';
  /** Lines of the section `pgbouncer`: `{ default_pool_size: '2' }`. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface PgbouncerServer extends Controls {
  readonly url: string;
}

function configuration(options: PgbouncerOptions, port: number): string {
  const { hostname, port: targetPort, username, password } = new URL(options.target);
  const login = [`user=${decodeURIComponent(username) || 'postgres'}`];
  if (password !== '') login.push(`password=${decodeURIComponent(password)}`);
  const settings = Object.entries({
    listen_addr: '127.0.0.1',
    listen_port: String(port),
    unix_socket_dir: '',
    auth_type: 'any',
    pool_mode: options.mode ?? 'transaction',
    max_client_conn: '500',
    default_pool_size: '20',
    ignore_startup_parameters: 'extra_float_digits',
    ...options.settings,
  });
  return [
    '[databases]',
    `* = host=${hostname} port=${targetPort || '5432'} ${login.join(' ')}`,
    '[pgbouncer]',
    ...settings.map(([name, value]) => `${name} = ${value}`),
    '',
  ].join('\n');
}

export async function startPgbouncer(options: PgbouncerOptions): Promise<PgbouncerServer> {
  const command = await need('pgbouncer');
  const user = unprivileged();
  const urlAt = (port: number): string => {
    const url = new URL(options.target);
    url.hostname = '127.0.0.1';
    url.port = String(port);
    return url.href;
  };
  const controls = await supervise({
    name: 'pgbouncer',
    gentle: 'SIGTERM',
    prepare: async (folder) => giveTo(user, folder),
    launch: (port, folder) => {
      const file = join(folder, 'pgbouncer.ini');
      writeFileSync(file, configuration(options, port), { mode: 0o600 });
      giveTo(user, file);
      return { command, args: [file], folder, user };
    },
    answers: async (port) => (await queryOnce(urlAt(port), 'SELECT 1')) === '1',
  });
  return Object.assign(controls, { url: urlAt(controls.port) });
}
