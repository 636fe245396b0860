/** Every setting once: its name in flags and in the file, the variable it may come from, and what it may be. */

export interface Setting {
  /** `--name` on the command line, `"name"` in the file. */
  readonly name: string;
  readonly variable: string;
  readonly kind: 'text' | 'port' | 'switch' | 'level' | 'rights' | 'proxies';
  readonly text: string;
}

export const SETTINGS = [
  { name: 'store', variable: 'HOLDFAST_STORE', kind: 'text', text: 'the URL of the store' },
  { name: 'host', variable: 'HOLDFAST_HOST', kind: 'text', text: 'the address to listen on' },
  { name: 'port', variable: 'HOLDFAST_PORT', kind: 'port', text: 'the port to listen on' },
  {
    name: 'keys',
    variable: 'HOLDFAST_KEYS',
    kind: 'text',
    text: 'the file of API keys (holdfast key create)',
  },
  {
    name: 'jwt-issuer',
    variable: 'HOLDFAST_JWT_ISSUER',
    kind: 'text',
    text: 'whose tokens count',
  },
  {
    name: 'jwt-audience',
    variable: 'HOLDFAST_JWT_AUDIENCE',
    kind: 'text',
    text: 'whom tokens have to be made for',
  },
  {
    name: 'jwt-jwks',
    variable: 'HOLDFAST_JWT_JWKS',
    kind: 'text',
    text: 'where the keys of the issuer are: a URL or a file',
  },
  {
    name: 'jwt-rights',
    variable: 'HOLDFAST_JWT_RIGHTS',
    kind: 'rights',
    text: 'what tokens may do that do not say it themselves: rights with commas between, or none',
  },
  {
    name: 'insecure',
    variable: 'HOLDFAST_INSECURE',
    kind: 'switch',
    text: 'serve everybody, also beyond loopback',
  },
  {
    name: 'tls-cert',
    variable: 'HOLDFAST_TLS_CERT',
    kind: 'text',
    text: 'the certificate file, for https',
  },
  { name: 'tls-key', variable: 'HOLDFAST_TLS_KEY', kind: 'text', text: 'its private key' },
  {
    name: 'trust-proxy',
    variable: 'HOLDFAST_TRUST_PROXY',
    kind: 'proxies',
    text: 'the proxies whose x-forwarded-for counts: addresses or networks, with commas between',
  },
  {
    name: 'audit',
    variable: 'HOLDFAST_AUDIT',
    kind: 'text',
    text: 'the file that evictions and key changes are noted in',
  },
  {
    name: 'log-level',
    variable: 'HOLDFAST_LOG_LEVEL',
    kind: 'level',
    text: 'trace, debug, info, warn, error or silent',
  },
] as const satisfies readonly Setting[];

export type SettingName = (typeof SETTINGS)[number]['name'];

/** As they are written: checked before they are used. */
export type Values = Partial<Record<SettingName, string>>;
