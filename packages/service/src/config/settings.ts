/** Every setting once: its name in flags and in the file, the variable it may come from, and what it may be. */

export interface Setting {
  /** `--name` on the command line, `"name"` in the file. */
  readonly name: string;
  readonly variable: string;
  readonly kind: 'text' | 'port' | 'switch' | 'level' | 'rights' | 'proxies' | 'hosts' | 'duration';
}

export const SETTINGS = [
  { name: 'store', variable: 'HOLDFAST_STORE', kind: 'text' },
  { name: 'host', variable: 'HOLDFAST_HOST', kind: 'text' },
  { name: 'port', variable: 'HOLDFAST_PORT', kind: 'port' },
  { name: 'api-keys', variable: 'HOLDFAST_API_KEYS', kind: 'text' },
  { name: 'jwt-issuer', variable: 'HOLDFAST_JWT_ISSUER', kind: 'text' },
  { name: 'jwt-audience', variable: 'HOLDFAST_JWT_AUDIENCE', kind: 'text' },
  { name: 'jwt-jwks', variable: 'HOLDFAST_JWT_JWKS', kind: 'text' },
  { name: 'jwt-rights', variable: 'HOLDFAST_JWT_RIGHTS', kind: 'rights' },
  { name: 'insecure', variable: 'HOLDFAST_INSECURE', kind: 'switch' },
  { name: 'allowed-hosts', variable: 'HOLDFAST_ALLOWED_HOSTS', kind: 'hosts' },
  { name: 'tls-cert', variable: 'HOLDFAST_TLS_CERT', kind: 'text' },
  { name: 'tls-key', variable: 'HOLDFAST_TLS_KEY', kind: 'text' },
  { name: 'trust-proxy', variable: 'HOLDFAST_TRUST_PROXY', kind: 'proxies' },
  { name: 'audit', variable: 'HOLDFAST_AUDIT', kind: 'text' },
  { name: 'drain', variable: 'HOLDFAST_DRAIN', kind: 'duration' },
  { name: 'log-level', variable: 'HOLDFAST_LOG_LEVEL', kind: 'level' },
] as const satisfies readonly Setting[];

export type SettingName = (typeof SETTINGS)[number]['name'];

/** As they are written: checked before they are used. */
export type Values = Partial<Record<SettingName, string>>;
