/** The options of all commands: their help texts, and their values as given. */
import { parseDuration } from 'holdfast/protocol';
import { usageFailure } from '../failure.js';

export interface OptionSpec {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
  /** Placeholder of the value in the help text. */
  readonly value?: string;
  /** The possible values, if they are few. */
  readonly choices?: readonly string[];
  /** Whether it may be given several times. Default false: the last one counts. */
  readonly repeats?: true;
  readonly text: string;
}

const value = (placeholder: string, text: string) => ({ type: 'string', value: placeholder, text }) as const;
const values = (placeholder: string, text: string) =>
  ({ ...value(placeholder, text), repeats: true }) as const;
const flag = (text: string, short?: string) => ({ type: 'boolean', text, ...(short && { short }) }) as const;

/** The options of `serve`, in the order of its help. */
const SERVICE_OPTIONS = {
  config: value('FILE', 'settings as JSON, by the names of the flags'),
  host: value('ADDRESS', 'the address to listen on. Default 127.0.0.1'),
  port: value('N', 'the port to listen on; 0 takes a free one. Default 8080'),
  'api-keys': value('FILE', 'the file of API keys'),
  'jwt-issuer': value('URL', 'the issuer whose JWTs are accepted'),
  'jwt-audience': value('TEXT', 'the audience that JWTs must name'),
  'jwt-jwks': value('URL', 'where the public keys of the issuer are: a URL or a file'),
  'jwt-rights': value('LIST', 'rights of JWTs that name none themselves. Default none'),
  insecure: flag('serve without authentication beyond loopback'),
  'allowed-hosts': value(
    'LIST',
    'host names to answer to without authentication, comma-separated; * is any. Default localhost',
  ),
  'tls-cert': value('FILE', 'the certificate, for https'),
  'tls-key': value('FILE', 'its private key'),
  'trust-proxy': value(
    'LIST',
    'the proxies whose x-forwarded-for is trusted: addresses or networks, comma-separated',
  ),
  audit: value('FILE', 'the audit log: evictions and changed API keys'),
  drain: value('TIME', 'how long /readyz answers 503 before closing, for load balancers. Default 0'),
  'log-level': {
    ...value('LEVEL', 'trace, debug, info, warn, error or silent. Default info'),
    choices: ['trace', 'debug', 'info', 'warn', 'error', 'silent'],
  },
  'print-config': flag('print the settings in force, without starting'),
};

export const OPTIONS = {
  ...SERVICE_OPTIONS,
  store: value(
    'URL',
    'where the locks are kept; see `holdfast --help`. Default: a file in your state folder',
  ),
  namespace: value('NAME', 'namespace of the keys, which keeps users of one store apart. Default "default"'),
  ttl: value(
    'TIME',
    'how long the lease lives without renewal. Default of run and lead: 30s; of renew: as before',
  ),
  wait: value('TIME', 'how long to wait for the lock; 0 does not wait. Default 10s'),
  key: values('KEY', 'one more key: all of them are held, or none. May be given several times'),
  shared: flag('share the lock with other --shared holders. Default: exclusive'),
  owner: value('TEXT', 'who holds it, for people to read. Default USER@HOST:PID'),
  metadata: values('NAME=TEXT', 'a note for people who inspect the key. May be given several times'),
  handoff: value(
    'FILE',
    'the file of the lease. Default: acquire prints the lease, others take $HOLDFAST_HANDOFF',
  ),
  permits: value('K', 'take K of the permits that --capacity names. Default 1'),
  capacity: value('N', 'make the lock a semaphore with N permits'),
  grace: value(
    'TIME',
    'time between TERM and KILL when the lease cannot be renewed. Default ttl/4, at most 5s',
  ),
  'min-hold': value('TIME', 'keep the lock at least this long, however soon it is released'),
  'max-hold': value('TIME', 'end COMMAND after this time: TERM the grace before, KILL then. Default: never'),
  tick: value(
    'TIME',
    'run once per TIME (counted in UTC), on one of the machines that start it; the others exit 0',
  ),
  restart: flag('when COMMAND ends by itself, resign and take part again'),
  limit: value('N', 'at most N keys. Default: all'),
  after: value('KEY', 'only keys that sort after KEY'),
  every: value('TIME', 'how often to read the keys. Default 500ms'),
  print: flag('print what would be created, without connecting'),
  supabase: flag('also grant what the Supabase store needs'),
  'time-to-live': flag('turn time to live on for an existing DynamoDB table too'),
  rights: value(
    'LIST',
    'rights of the API key: ROLE:NAMESPACE, comma-separated; roles are read, lock, admin',
  ),
  expires: value('TIME', 'how long the API key is valid. Default: for ever'),
  token: value('N', 'only the holder with this fencing token, as `inspect` shows it'),
  reason: value('TEXT', 'why, for the evicted holder and for the audit log of a service'),
  yes: flag('do not ask', 'y'),
  quiet: flag('print failures only', 'q'),
  verbose: flag('say on stderr what happens to the lock', 'v'),
  json: flag('print JSON'),
  help: flag('show this help', 'h'),
  version: flag('show the version', 'V'),
} satisfies { readonly [name: string]: OptionSpec };

export const SERVICE_OPTION_NAMES = Object.keys(SERVICE_OPTIONS) as readonly (keyof typeof SERVICE_OPTIONS)[];

export type OptionName = keyof typeof OPTIONS;

/** Options of one call, by name. Reading one checks its form. */
export class Options {
  readonly #given: ReadonlyMap<OptionName, readonly string[]>;

  constructor(given: ReadonlyMap<OptionName, readonly string[]>) {
    this.#given = given;
  }

  has(name: OptionName): boolean {
    return this.#given.has(name);
  }

  text(name: OptionName): string | undefined {
    return this.#given.get(name)?.at(-1);
  }

  /** All values of an option that repeats, in their order. */
  texts(name: OptionName): readonly string[] {
    return this.#given.get(name) ?? [];
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

/** A number without a unit is refused, because people mean seconds as often as milliseconds. 0 needs no unit. */
function durationIn(option: string, text: string): number {
  if (text === '0') return 0;
  const ms = parseDuration(text);
  if (!Number.isNaN(ms)) return ms;
  const hint = /^\d+(\.\d+)?$/.test(text)
    ? `add a unit, as in ${text}s`
    : 'write it like 500ms, 30s, 5m, 1h or 7d';
  throw usageFailure(`--${option}: "${text}" is not a duration; ${hint}`);
}
