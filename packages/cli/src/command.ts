/** The shape of a command, and its help text, which is made from that shape. */
import type { CommandShape, Invocation } from './options/invocation.js';
import { OPTIONS, type OptionName, type OptionSpec } from './options/options.js';
import type { Terminal } from './printing/terminal.js';

export interface Command extends CommandShape {
  readonly summary: string;
  /** The text at the top of its help. */
  readonly about: string;
  readonly examples: readonly (readonly [command: string, what: string])[];
  /** Resolves to the exit status. Throws a `Failure` or an error of the library. */
  run(invocation: Invocation, terminal: Terminal): Promise<number>;
}

const STORES = `STORES
  --store URL, else $HOLDFAST_STORE, else the store that LockServiceCentral's variables (LOCKER_*) name, else the file
  holdfast/locks.db in your state folder ($XDG_STATE_HOME, or ~/.local/state).
  sqlite:PATH                                        a file, for all processes of this machine
  redis://[USER:PASSWORD@]HOST[:PORT][/DB]           Redis; rediss:// with TLS. Needs the package ioredis, or redis
  redis+cluster://HOST[:PORT],HOST[:PORT]            Redis Cluster; rediss+cluster:// with TLS
  redis+unix:///PATH                                 Redis by a Unix socket. Valkey: the same with valkey for redis
  postgres://[USER:PASSWORD@]HOST[:PORT]/DATABASE    PostgreSQL. Needs the package pg, or postgres; see migrate
  dynamodb://REGION/TABLE                            DynamoDB. Needs the package @aws-sdk/client-dynamodb; see migrate
  nats://[USER:PASSWORD@]HOST[:PORT][,HOST]/BUCKET   NATS; nats+tls:// with TLS. Needs the package @nats-io/transport-node
  https://HOST[:PORT][,HOST]                         a lock service; its API key is in $HOLDFAST_API_KEY`;

const STATUSES = `EXIT STATUS
  0    done                              75   the lock was not acquired in time
  1    anything else                     76   the lease was lost; COMMAND was ended
  64   wrong usage                       126  COMMAND cannot be executed
  69   the store cannot be reached       127  COMMAND was not found
  run exits with the status of COMMAND, 128 + N if signal N ended it.`;

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
    ...optionLines(['store', 'namespace', 'json', 'help', 'version']),
    '',
    STORES,
    '',
    STATUSES,
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
    ...optionLines([...command.options, 'store', 'namespace', 'json', 'help']),
    '',
    terminal.paint('bold', 'EXAMPLES'),
    ...examples,
  ].join('\n');
}

function optionLines(names: readonly OptionName[]): string[] {
  const heads = names.map((name) => {
    const { short, value }: OptionSpec = OPTIONS[name];
    return `${short ? `-${short}, ` : '    '}--${name}${value ? ` ${value}` : ''}`;
  });
  const width = Math.max(...heads.map((head) => head.length));
  return names.map((name, at) => `  ${(heads[at] ?? '').padEnd(width)}  ${OPTIONS[name].text}`);
}
