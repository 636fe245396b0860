/** The options of all commands: their help texts, and their values as given. */
import { parseDuration } from 'holdfast/protocol';
import { usageFailure } from '../failure.js';

export interface OptionSpec {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
  /** Placeholder of the value in the help text. */
  readonly value?: string;
  readonly text: string;
}

export const OPTIONS = {
  store: { type: 'string', value: 'URL', text: 'where the locks are kept (see `holdfast --help`)' },
  namespace: {
    type: 'string',
    value: 'NAME',
    text: 'namespace of the keys, which keeps users of one store apart (default)',
  },
  ttl: { type: 'string', value: 'TIME', text: 'how long the lease lives without renewal (30s)' },
  wait: {
    type: 'string',
    value: 'TIME',
    text: 'how long to wait for the lock (10s); 0 does not wait',
  },
  owner: { type: 'string', value: 'TEXT', text: 'who holds it, for people to read (HOST:PID)' },
  permits: { type: 'string', value: 'K', text: 'take K of the permits that --capacity names (1)' },
  capacity: { type: 'string', value: 'N', text: 'make the lock a semaphore with N permits' },
  grace: {
    type: 'string',
    value: 'TIME',
    text: 'time between TERM and KILL when the lease cannot be renewed (ttl/4, at most 5s)',
  },
  'min-hold': {
    type: 'string',
    value: 'TIME',
    text: 'keep the lock at least this long, however soon COMMAND ends',
  },
  limit: { type: 'string', value: 'N', text: 'at most N keys' },
  after: { type: 'string', value: 'KEY', text: 'only keys that sort after KEY' },
  every: { type: 'string', value: 'TIME', text: 'how often to read the keys (500ms)' },
  print: { type: 'boolean', text: 'print what would be created, without connecting' },
  supabase: { type: 'boolean', text: 'also grant what the Supabase store needs' },
  'time-to-live': {
    type: 'boolean',
    text: 'turn time to live on for an existing DynamoDB table too',
  },
  config: { type: 'string', value: 'FILE', text: 'settings as JSON, by the names of the flags' },
  host: { type: 'string', value: 'ADDRESS', text: 'the address to listen on (127.0.0.1)' },
  port: { type: 'string', value: 'N', text: 'the port to listen on (8080); 0 takes a free one' },
  'api-keys': { type: 'string', value: 'FILE', text: 'the file of API keys' },
  'jwt-issuer': { type: 'string', value: 'URL', text: 'the issuer whose JWTs are accepted' },
  'jwt-audience': { type: 'string', value: 'TEXT', text: 'the audience that JWTs must name' },
  'jwt-jwks': {
    type: 'string',
    value: 'URL',
    text: 'where the public keys of the issuer are: a URL or a file',
  },
  'jwt-rights': {
    type: 'string',
    value: 'LIST',
    text: 'rights of JWTs that name none themselves (none)',
  },
  insecure: { type: 'boolean', text: 'serve without authentication beyond loopback' },
  'allowed-hosts': {
    type: 'string',
    value: 'LIST',
    text: 'host names to answer to without authentication, comma-separated; * is any (localhost)',
  },
  'tls-cert': { type: 'string', value: 'FILE', text: 'the certificate, for https' },
  'tls-key': { type: 'string', value: 'FILE', text: 'its private key' },
  'trust-proxy': {
    type: 'string',
    value: 'LIST',
    text: 'the proxies whose x-forwarded-for is trusted: addresses or networks, comma-separated',
  },
  audit: { type: 'string', value: 'FILE', text: 'the audit log: evictions and changed API keys' },
  drain: {
    type: 'string',
    value: 'TIME',
    text: 'how long /readyz answers 503 before closing, for load balancers (0)',
  },
  'log-level': { type: 'string', value: 'LEVEL', text: 'trace, debug, info, warn, error or silent (info)' },
  'print-config': { type: 'boolean', text: 'print the settings in force, without starting' },
  rights: {
    type: 'string',
    value: 'LIST',
    text: 'rights of the API key: ROLE:NAMESPACE, comma-separated; roles are read, lock, admin',
  },
  expires: { type: 'string', value: 'TIME', text: 'how long the API key is valid (for ever)' },
  yes: { type: 'boolean', short: 'y', text: 'do not ask' },
  json: { type: 'boolean', text: 'print JSON' },
  help: { type: 'boolean', short: 'h', text: 'show this help' },
  version: { type: 'boolean', short: 'V', text: 'show the version' },
} as const satisfies { readonly [name: string]: OptionSpec };

export type OptionName = keyof typeof OPTIONS;

/** Options of one call, by name. Reading one checks its form. */
export class Options {
  readonly #given: ReadonlyMap<OptionName, string>;

  constructor(given: ReadonlyMap<OptionName, string>) {
    this.#given = given;
  }

  has(name: OptionName): boolean {
    return this.#given.has(name);
  }

  text(name: OptionName): string | undefined {
    return this.#given.get(name);
  }

  durationMs(name: OptionName): number | undefined {
    const text = this.text(name);
    return text === undefined ? undefined : durationIn(name, text);
  }

  count(name: OptionName, max: number): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    if (!/^0*[1-9]\d*$/.test(text)) throw usageFailure(`--${name}: "${text}" is not a whole number above 0`);
    if (Number(text) > max) throw usageFailure(`--${name}: ${text} is too large; at most ${max}`);
    return Number(text);
  }
}

/** A number without a unit is refused, as people mean seconds as often as milliseconds. 0 needs no unit. */
function durationIn(option: string, text: string): number {
  if (text === '0') return 0;
  const ms = parseDuration(text);
  if (!Number.isNaN(ms)) return ms;
  const hint = /^\d+(\.\d+)?$/.test(text)
    ? `add a unit, as in ${text}s`
    : 'write it like 500ms, 30s, 5m or 1h';
  throw usageFailure(`--${option}: "${text}" is not a duration; ${hint}`);
}
