/** The shape of a command, and its help text, which is made from that shape. */
import { ALONE, type CommandShape, type Invocation, optionsOf } from './options/invocation.js';
import { OPTIONS, type OptionName, type OptionSpec } from './options/options.js';
import type { Terminal } from './printing/terminal.js';

export interface Command extends CommandShape {
  readonly summary: string;
  /** The text at the top of its help. */
  readonly about: string;
  readonly examples: readonly (readonly [command: string, what: string])[];
  /** `commands`: the table of all. Resolves to the exit status. Throws a `Failure` or an error of the library. */
  run(invocation: Invocation, terminal: Terminal, commands: readonly Command[]): Promise<number>;
}

export const STORES = `STORES
  --store URL, else $HOLDFAST_STORE, else the store that LockServiceCentral's variables (LOCKER_*) name, else the file
  holdfast/locks.db in your state folder ($XDG_STATE_HOME, or ~/.local/state).
  sqlite:PATH                                        a file, for all processes of this machine
  redis://[USER:PASSWORD@]HOST[:PORT][/DB]           Redis; rediss:// with TLS. Needs the package ioredis, or redis
  redis+cluster://HOST[:PORT],HOST[:PORT]            Redis Cluster; rediss+cluster:// with TLS
  redis-quorum://HOST[:PORT],HOST[:PORT],HOST[:PORT] a quorum of independent Redis servers; see migrate
  redis+unix:///PATH                                 Redis by a Unix socket. Valkey: the same with valkey for redis
  postgres://[USER:PASSWORD@]HOST[:PORT]/DATABASE    PostgreSQL. Needs the package pg, or postgres; see migrate
  mysql://[USER:PASSWORD@]HOST[:PORT]/DATABASE       MySQL or MariaDB. Needs the package mysql2; see migrate
  dynamodb://REGION/TABLE                            DynamoDB. Needs the package @aws-sdk/client-dynamodb; see migrate
  firestore://PROJECT/COLLECTION                     Firestore. Needs the package @google-cloud/firestore
  nats://[USER:PASSWORD@]HOST[:PORT][,HOST]/BUCKET   NATS; nats+tls:// with TLS. Needs the package @nats-io/transport-node
  etcd://[USER:PASSWORD@]HOST[:PORT][,HOST]/PREFIX   etcd; etcds:// with TLS
  https://HOST[:PORT][,HOST]                         a lock service; its API key is in $HOLDFAST_API_KEY`;

/** Statuses and their meaning: for the help, the man page and docs/cli.md. */
export const STATUSES: readonly (readonly [status: string, meaning: string])[] = [
  ['0', 'done; inspect: the key is held; leader: there is a leader'],
  ['1', 'inspect: the key is free; leader: there is none; a failed check of doctor; anything else'],
  ['64', 'wrong usage'],
  ['69', 'the store cannot be reached or used'],
  ['75', 'the lock was not acquired in time'],
  ['76', 'the lease was lost; run and lead ended COMMAND'],
  ['126', 'COMMAND cannot be executed'],
  ['127', 'COMMAND was not found'],
  ['128+N', 'signal N ended COMMAND, or the waiting for the lock'],
];

export function generalHelp(terminal: Terminal, commands: readonly Command[]): string {
  const width = Math.max(...commands.map(({ name, operands }) => `${name} ${operands.text}`.length));
  const lines = commands.map(({ name, operands, summary }) => {
    return `  ${`${name} ${operands.text}`.padEnd(width)}  ${summary}`;
  });
  return [
    'holdfast runs commands under a lock, and shows who holds which lock.',
    '',
    terminal.paint('bold', 'USAGE'),
    '  holdfast COMMAND [OPTIONS]',
    '',
    terminal.paint('bold', 'COMMANDS'),
    ...lines,
    '',
    terminal.paint('bold', 'OPTIONS'),
    ...optionLines(ALONE),
    '',
    STORES,
    '',
    terminal.paint('bold', 'EXIT STATUS'),
    ...STATUSES.map(([status, meaning]) => `  ${status.padEnd(5)}  ${meaning}`),
    '  run and lead exit with the status of COMMAND.',
    '',
    'holdfast COMMAND --help shows the options of a command, with examples.',
  ].join('\n');
}

export function commandHelp(terminal: Terminal, command: Command): string {
  const examples = command.examples.flatMap(([line, what]) => [
    `  ${terminal.paint('dim', `# ${what}`)}`,
    `  ${line}`,
  ]);
  return [
    command.about,
    '',
    terminal.paint('bold', 'USAGE'),
    `  holdfast ${command.name} ${command.operands.text}`.trimEnd(),
    '',
    terminal.paint('bold', 'OPTIONS'),
    ...optionLines(optionsOf(command)),
    '',
    terminal.paint('bold', 'EXAMPLES'),
    ...examples,
  ].join('\n');
}

function optionLines(names: readonly OptionName[]): string[] {
  const heads = names.map((name) => `${spec(name).short ? '' : '    '}${optionHead(name)}`);
  const width = Math.max(...heads.map((head) => head.length));
  return names.map((name, at) => `  ${(heads[at] ?? '').padEnd(width)}  ${OPTIONS[name].text}`);
}

/** `-y, --yes`, `--ttl TIME` */
export function optionHead(name: OptionName): string {
  const { short, value } = spec(name);
  return `${short ? `-${short}, ` : ''}--${name}${value ? ` ${value}` : ''}`;
}

const spec = (name: OptionName): OptionSpec => OPTIONS[name];
