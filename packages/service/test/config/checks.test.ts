import { InvalidArgumentError } from 'holdfast';
import { describe, expect, it } from 'vitest';
import { type ConfigSources, configFrom, shownConfig } from '../../src/config/index.js';

const from = (sources: Partial<ConfigSources>) => configFrom({ defaultStore: () => 'memory:', ...sources });
const file = (content: unknown): Partial<ConfigSources> => ({ file: JSON.stringify(content) });

describe('what is wrong is told before anything starts', () => {
  const wrong: readonly (readonly [string, Partial<ConfigSources>, RegExp])[] = [
    ['a file that is not JSON', { file: '{' }, /not JSON/],
    ['a file that is a list', file([]), /one JSON object/],
    ['a name that is none', file({ prot: 1 }), /"prot", which is not a setting\. Settings are: store, host/],
    ['a list for a text', file({ host: ['a'] }), /"host" in the configuration file has to be a text/],
    ['a limit that is none', file({ limits: { waitres: 1 } }), /no limit "waitres"/],
    ['a limit of 0', file({ limits: { waiters: 0 } }), /waiters is 0/],
    ['limits that are a list', file({ limits: [1] }), /"limits" .* has to be an object/],
    [
      'a limit of principals that is none',
      file({ principalLimits: { locks: 1 } }),
      /no limit "locks" for a principal/,
    ],
    ['a limit of principals that is a text', file({ principalLimits: { held: '3' } }), /held is 3/],
    ['a port that is none', { flags: { port: '65536' } }, /port is "65536", .* from 0 to 65535/],
    ['a port with a sign', { environment: { HOLDFAST_PORT: '-1' } }, /port is "-1"/],
    ['a switch that is neither', { environment: { HOLDFAST_INSECURE: 'maybe' } }, /true or false/],
    ['a level that is none', { flags: { 'log-level': 'loud' } }, /one of trace, debug/],
    ['a host with a port', { flags: { 'allowed-hosts': 'locks.example:80' } }, /host names without ports/],
    ['a time to drain without a unit', { environment: { HOLDFAST_DRAIN: '5' } }, /a duration such as/],
    ['a blank value', { flags: { host: ' ' } }, /host is empty/],
    [
      'a certificate without its key',
      { flags: { 'tls-cert': 'a.pem' } },
      /tls-cert and tls-key belong together/,
    ],
    ['a key without its certificate', file({ 'tls-key': 'a.key' }), /tls-cert and tls-key belong together/],
    ['an audience without an issuer', { flags: { 'jwt-audience': 'a' } }, /jwt-issuer is missing/],
    ['keys of no issuer', { flags: { 'jwt-jwks': 'a.json' } }, /jwt-issuer is missing/],
    [
      'an issuer without an audience',
      { environment: { HOLDFAST_JWT_ISSUER: 'https://a.example' } },
      /jwt-audience is missing/,
    ],
    ['a right that is none', { flags: { 'jwt-rights': 'all:*' } }, /"all:\*" is not a right/],
    [
      'rights for tokens of nobody',
      { flags: { 'jwt-rights': 'read:*' } },
      /jwt-rights is set, but jwt-issuer is missing/,
    ],
    [
      'keys of our own for an issuer without an audience',
      { flags: { 'jwt-jwks': 'k.json' }, environment: { JWT_ISSUER: 'https://a.example' } },
      /jwt-audience is missing/,
    ],
    [
      'keys that nobody would be asked for',
      { flags: { insecure: 'true', 'api-keys': 'k.json' } },
      /remove one of the two/,
    ],
    [
      'tokens that nobody would be asked for',
      { flags: { insecure: 'true', 'jwt-issuer': 'https://a.example', 'jwt-audience': 'a' } },
      /remove one of the two/,
    ],
    [
      'a store that is the service itself',
      { environment: { HOLDFAST_STORE: 'http://127.0.0.1:8080' } },
      /http:\/\/127\.0\.0\.1:8080 is this service itself/,
    ],
    ...['http://localhost:9', 'http://key@a:1,[::1]:9/', 'HTTP://127.0.0.1:9?x=y'].map(
      (store) =>
        [
          `the same by another name: ${store}`,
          { flags: { store, host: '0.0.0.0', port: '9', insecure: 'true' } },
          /is this service itself/,
        ] as const,
    ),
  ];

  it('a store that is another service is none of it', () => {
    for (const store of [
      'http://127.0.0.1:8081',
      'http://127.0.0.2:8080',
      'http://locks:8080',
      'https://127.0.0.1',
    ])
      expect(from({ flags: { store } }).store).toBe(store);
    expect(from({ flags: { store: 'http://127.0.0.1:9', port: '9', host: '10.0.0.5' } }).port).toBe(9);
  });

  it.each(wrong)('%s', (_what, sources, words) => {
    expect(() => from(sources)).toThrow(InvalidArgumentError);
    expect(() => from(sources)).toThrow(words);
  });
});

describe('what is shown', () => {
  const stores: readonly (readonly [string, string])[] = [
    ['redis://ann:s3cret@host:6379/1', 'redis://***@host:6379/1'],
    ['redis://:s3cret@host', 'redis://***@host'],
    ['postgres://ann:s3/c@ret@host/db?sslmode=require', 'postgres://***@host/db?sslmode=require'],
    ['postgres://host/db?user=ann&password=s3cret', 'postgres://host/db?user=ann&password=***'],
    ['https://host?key=s3cret&x=1', 'https://host?key=***&x=1'],
    ['https://host?apiKey=s3cret', 'https://host?apiKey=***'],
    ['nats://host/b?token=s3cret', 'nats://host/b?token=***'],
    ['sqlite:/var/lib/app/locks.db', 'sqlite:/var/lib/app/locks.db'],
    [
      'dynamodb://AKIA:s3cret@eu-west-1/locks?layout=lock-service-central',
      'dynamodb://***@eu-west-1/locks?layout=lock-service-central',
    ],
  ];

  it.each(stores)('%s without its secret', (store, shown) => {
    expect(shownConfig(from({ flags: { store } })).store).toBe(shown);
    expect(shown).not.toMatch(/s3/);
  });

  it('the address of the issuer’s keys is, without the secret in it', () => {
    const jwks = 'https://ann:s3cret@id.example/keys?token=s3cret';
    const flags = { 'jwt-issuer': 'https://id.example', 'jwt-audience': 'a', 'jwt-jwks': jwks };
    expect(shownConfig(from({ flags }))['jwt-jwks']).toBe('https://***@id.example/keys?token=***');
  });

  it('is all that is in force, as a file that says the same', () => {
    const tokens = { 'jwt-issuer': 'https://id.example', 'jwt-audience': 'a', 'jwt-rights': 'read:a,lock:b' };
    const tls = { 'tls-cert': 'cert.pem', 'tls-key': 'key.pem' };
    const more = { 'api-keys': 'keys.json', audit: 'audit.jsonl', 'trust-proxy': '10.0.0.7,fd00::/8' };
    const others = { port: '9', 'log-level': 'warn', store: 'memory:', host: 'localhost' };
    for (const flags of [{}, others, { ...others, ...tokens, ...tls, ...more }, { insecure: 'true' }]) {
      const config = from({ flags, file: JSON.stringify({ limits: { waiters: 7 } }) });
      expect(from({ file: JSON.stringify(shownConfig(config)) })).toEqual(config);
    }
  });

  it('no refusal repeats the store, whatever is wrong with the rest', () => {
    expect(() => from({ flags: { store: 'redis://:s3cret@host', port: 'x' } })).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('s3cret') }),
    );
  });
});
