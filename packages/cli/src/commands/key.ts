/** `holdfast key`: makes, lists and revokes the API keys of the service. A key is shown once, when it is made. */
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import type { KeyChange, KeyInfo } from 'holdfast-service';
import { wallMs } from '../clock.js';
import type { Command } from '../command.js';
import { formatDuration, formatTime } from '../duration.js';
import { EXIT, usageFailure } from '../exit.js';
import type { Options } from '../options.js';
import { type Column, printable, type Terminal, table } from '../output.js';
import { statePath } from '../session.js';

/** Only this command needs it, and it takes a while to load. */
type Service = typeof import('holdfast-service');

export const key: Command = {
  name: 'key',
  operands: { min: 1, max: 2, text: 'create NAME | list | revoke ID|NAME' },
  takesCommandLine: false,
  options: ['rights', 'expires', 'keys', 'audit'],
  summary: 'make, list and revoke the API keys of the service',
  about: `Makes, lists and revokes the API keys by which clients of the service are known. "create" shows the key once, on
stdout; kept is a hash of it. A right is ROLE:NAMESPACE: "lock:billing" is for one namespace, "read:team-*" for all that
begin so, "admin:*" for everything; who may lock may read, and an admin may lock and evict. A name may have two keys
alive, so that users can change from one to the other: make the second (it has the rights of the first unless told),
hand it out, then revoke the first by its id. "revoke NAME" revokes all keys of that name. A running service sees every
change within a second.`,
  examples: [
    ['holdfast key create billing --rights lock:billing', 'a key that may use the locks of one namespace'],
    [
      'holdfast key create grafana --rights read:* --expires 720h',
      'one that may look at everything, for 30 days',
    ],
    ['holdfast key create billing', 'a second key with the same rights, to change to'],
    ['holdfast key list', 'without secrets'],
    ['holdfast key revoke 3f9c2a1b7d04', 'at once'],
  ],

  async run({ operands, options }, terminal) {
    const [action = '', subject] = operands;
    const change = actionOf(action, subject, options);
    await change(await import('holdfast-service'), terminal);
    return EXIT.ok;
  },
};

type Action = (service: Service, terminal: Terminal) => Promise<void>;

function actionOf(action: string, subject: string | undefined, options: Options): Action {
  if (action === 'list') {
    if (subject !== undefined) throw usageFailure(`key list takes nothing more, not "${subject}"`);
    return async (service, terminal) => list(service, options, terminal);
  }
  if (action !== 'create' && action !== 'revoke') {
    throw usageFailure(`key does not know "${action}"; there are create, list and revoke`);
  }
  if (subject === undefined) {
    throw usageFailure(action === 'create' ? 'key create needs a NAME' : 'key revoke needs an ID or a NAME');
  }
  const work = action === 'create' ? create : revoke;
  return (service, terminal) => work(service, subject, options, terminal);
}

async function create(service: Service, name: string, options: Options, terminal: Terminal): Promise<void> {
  const rights = options
    .text('rights')
    ?.split(',')
    .map((text) => text.trim());
  const ttlMs = options.durationMs('expires');
  if (ttlMs === 0) throw usageFailure('--expires: a key that ends at once is of no use');
  const { text, ...info } = await service.createKey(changeOf(service, options), {
    name,
    ...(rights === undefined ? {} : { rights }),
    ...(ttlMs === undefined ? {} : { ttlMs }),
  });
  if (options.has('json')) {
    terminal.out(JSON.stringify({ ...keyJson(info), key: text }));
    return;
  }
  terminal.err(`Key ${info.id} of "${name}", for ${info.rights.join(', ')}. It is shown only now:`);
  terminal.out(text);
  terminal.err(`Its hash is in ${printable(keysPath(options))}: holdfast serve --keys FILE goes by that.`);
}

async function revoke(service: Service, which: string, options: Options, terminal: Terminal): Promise<void> {
  const revoked = await service.revokeKeys(changeOf(service, options), which);
  if (options.has('json')) terminal.out(JSON.stringify(revoked.map(keyJson), null, 2));
  else if (revoked.length === 0) terminal.out(`"${printable(which)}" was revoked before.`);
  else for (const { id, name } of revoked) terminal.out(`Revoked ${id} of "${name}".`);
}

const COLUMNS: readonly Column[] = [
  { title: 'ID' },
  { title: 'NAME', colour: 'bold' },
  { title: 'STATE' },
  { title: 'MADE' },
  { title: 'RIGHTS', colour: 'cyan' },
];

function list(service: Service, options: Options, terminal: Terminal): void {
  const keys = service.listKeys(keysPath(options));
  if (options.has('json')) terminal.out(JSON.stringify(keys.map(keyJson), null, 2));
  else if (keys.length === 0) terminal.err('There are no keys.');
  else for (const line of table(terminal, COLUMNS, keys.map(rowOf))) terminal.out(line);
}

function rowOf(info: KeyInfo): readonly string[] {
  const { id, name, createdAt, rights } = info;
  return [id, printable(name), stateOf(info), formatTime(new Date(createdAt)), rights.join(', ')];
}

function stateOf({ alive, revokedAt, expiresAt }: KeyInfo): string {
  if (revokedAt !== null) return 'revoked';
  if (!alive) return 'expired';
  return expiresAt === null ? 'alive' : `alive for ${formatDuration(expiresAt - wallMs())}`;
}

function keyJson({ id, name, rights, createdAt, expiresAt, revokedAt, alive }: KeyInfo): object {
  const time = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());
  return {
    ...{ id, name, rights, alive },
    ...{ createdAt: time(createdAt), expiresAt: time(expiresAt), revokedAt: time(revokedAt) },
  };
}

function changeOf({ auditFile }: Service, options: Options): KeyChange {
  const path = keysPath(options);
  const audit = options.text('audit') ?? process.env.HOLDFAST_AUDIT ?? join(dirname(path), 'audit.jsonl');
  return { path, by: operator(), audit: auditFile(audit) };
}

function keysPath(options: Options): string {
  return options.text('keys') ?? (process.env.HOLDFAST_KEYS || statePath('keys.json', process.env));
}

/** Whoever is logged in; the number, where the user has no name. */
function operator(): string {
  try {
    return `user:${userInfo().username}`;
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
    return `user:${process.getuid?.() ?? 'unknown'}`;
  }
}
