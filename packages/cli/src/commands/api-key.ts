/** `holdfast api-key`: creates, lists and revokes the API keys of the service. An API key is shown once, when it is created. */
import { dirname, join } from 'node:path';
import type { ApiKeyChange, ApiKeyInfo } from 'holdfast-service/api-keys';
import { wallMs } from '../clock.js';
import type { Command } from '../command.js';
import { EXIT, usageFailure } from '../failure.js';
import type { Options } from '../options/options.js';
import { formatDuration, formatTime } from '../printing/describe.js';
import { type Column, jsonText, printable, quote, type Terminal, table } from '../printing/terminal.js';
import { type ApiKeys, loadApiKeys } from '../service.js';
import { statePath } from '../session.js';
import { userName } from '../user.js';

export const apiKey: Command = {
  name: 'api-key',
  operands: {
    min: 1,
    max: 2,
    text: 'create NAME | list | revoke ID|NAME',
    choices: ['create', 'list', 'revoke'],
  },
  options: ['rights', 'expires', 'api-keys', 'audit'],
  without: ['store', 'namespace'],
  summary: 'create, list and revoke API keys of the service',
  about: `Creates, lists and revokes the API keys of the service's clients. "create" prints the API key once, on stdout; the file
keeps a hash of it. A right is ROLE:NAMESPACE: "lock:billing" is for one namespace, "read:team-*" for all that start
with "team-", "admin:*" for everything. The role lock includes read; admin includes lock and evict. A name can have two
valid API keys, so that a client can change from one to the other: create the second (by default with the rights of the
first), give it to the client, then revoke the first by its id. "revoke NAME" revokes all API keys of that name. A
running service follows every change within a second.`,
  examples: [
    ['holdfast api-key create billing --rights lock:billing', 'may use the locks of one namespace'],
    ['holdfast api-key create grafana --rights read:* --expires 720h', 'may read everything, for 30 days'],
    ['holdfast api-key create billing', 'a second API key with the same rights'],
    ['holdfast api-key list', 'shows no secrets'],
    ['holdfast api-key revoke 3f9c2a1b7d04', 'takes effect within a second'],
  ],

  async run({ operands, options }, terminal) {
    const [action = '', subject] = operands;
    const change = actionOf(action, subject, options);
    await change(await loadApiKeys(), terminal);
    return EXIT.ok;
  },
};

type Action = (apiKeys: ApiKeys, terminal: Terminal) => Promise<void>;

function actionOf(action: string, subject: string | undefined, options: Options): Action {
  if (action === 'list') {
    if (subject !== undefined) throw usageFailure(`api-key list takes no argument, but got "${subject}"`);
    return async (apiKeys, terminal) => list(apiKeys, options, terminal);
  }
  if (action !== 'create' && action !== 'revoke') {
    throw usageFailure(`unknown action "${action}"; api-key has create, list and revoke`);
  }
  if (subject === undefined) {
    throw usageFailure(
      action === 'create' ? 'api-key create needs a NAME' : 'api-key revoke needs an ID or a NAME',
    );
  }
  const work = action === 'create' ? create : revoke;
  return (apiKeys, terminal) => work(apiKeys, subject, options, terminal);
}

async function create(apiKeys: ApiKeys, name: string, options: Options, terminal: Terminal): Promise<void> {
  const rights = options
    .text('rights')
    ?.split(',')
    .map((text) => text.trim());
  const ttlMs = options.durationMs('expires');
  if (ttlMs === 0) throw usageFailure('--expires must be longer than 0');
  const { text, ...info } = await apiKeys.createApiKey(changeOf(apiKeys, options), {
    name,
    ...(rights === undefined ? {} : { rights }),
    ...(ttlMs === undefined ? {} : { ttlMs }),
  });
  if (options.has('json')) {
    terminal.out(jsonText({ ...keyJson(info), key: text }));
    return;
  }
  terminal.err(`API key ${info.id} of "${name}", rights ${info.rights.join(', ')}. It is shown only once:`);
  terminal.out(text);
  const file = printable(keysPath(options));
  terminal.err(`Its hash is in ${file}; start the service with holdfast serve --api-keys ${file}`);
}

async function revoke(apiKeys: ApiKeys, which: string, options: Options, terminal: Terminal): Promise<void> {
  const revoked = await apiKeys.revokeApiKeys(changeOf(apiKeys, options), which);
  if (options.has('json')) terminal.out(jsonText(revoked.map(keyJson), 2));
  else if (revoked.length === 0) terminal.out(`${quote(which)} was already revoked.`);
  else for (const { id, name } of revoked) terminal.out(`Revoked ${id} of "${name}".`);
}

const COLUMNS: readonly Column[] = [
  { title: 'ID' },
  { title: 'NAME', colour: 'bold' },
  { title: 'STATE' },
  { title: 'CREATED' },
  { title: 'RIGHTS', colour: 'cyan' },
];

function list(apiKeys: ApiKeys, options: Options, terminal: Terminal): void {
  const keys = apiKeys.listApiKeys(keysPath(options));
  if (options.has('json')) terminal.out(jsonText(keys.map(keyJson), 2));
  else if (keys.length === 0) terminal.err('There are no API keys.');
  else for (const line of table(terminal, COLUMNS, keys.map(rowOf))) terminal.out(line);
}

function rowOf(info: ApiKeyInfo): readonly string[] {
  const { id, name, createdAt, rights } = info;
  return [id, printable(name), stateOf(info), formatTime(new Date(createdAt)), rights.join(', ')];
}

function stateOf({ alive, revokedAt, expiresAt }: ApiKeyInfo): string {
  if (revokedAt !== null) return 'revoked';
  if (!alive) return 'expired';
  return expiresAt === null ? 'valid' : `valid for ${formatDuration(expiresAt - wallMs())}`;
}

function keyJson({ id, name, rights, createdAt, expiresAt, revokedAt, alive }: ApiKeyInfo): object {
  const time = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());
  return {
    ...{ id, name, rights, alive },
    ...{ createdAt: time(createdAt), expiresAt: time(expiresAt), revokedAt: time(revokedAt) },
  };
}

function changeOf({ auditFile }: ApiKeys, options: Options): ApiKeyChange {
  const path = keysPath(options);
  const audit = options.text('audit') ?? (process.env.HOLDFAST_AUDIT || join(dirname(path), 'audit.jsonl'));
  return { path, by: `user:${userName()}`, audit: auditFile(audit) };
}

function keysPath(options: Options): string {
  return options.text('api-keys') ?? (process.env.HOLDFAST_API_KEYS || statePath('keys.json'));
}
