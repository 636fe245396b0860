import { openStore } from 'holdfast';
import { describe, expect, it } from 'vitest';
import type { Environment } from '../../src/v1/setting-values.js';
import { type CentralSettings, centralSettings } from '../../src/v1/settings.js';

const storeOf = (environment: Environment): string | null | undefined => centralSettings(environment)?.store;
const authOf = (environment: Environment): CentralSettings['auth'] | undefined =>
  centralSettings(environment)?.auth;

const LAYOUT = 'layout=lock-service-central';

const STORES: readonly (readonly [Environment, string])[] = [
  [{ SPRING_PROFILES_ACTIVE: 'memory' }, 'memory:'],
  [{ SPRING_PROFILES_ACTIVE: 'prod, memory' }, 'memory:'],
  [{ SPRING_PROFILES_ACTIVE: 'dynamodb' }, `dynamodb://us-east-1/locks?${LAYOUT}`],
  [{ LOCKER_DYNAMODB_REGION: 'eu-west-1' }, `dynamodb://eu-west-1/locks?${LAYOUT}`],
  [
    {
      SPRING_PROFILES_ACTIVE: 'dynamodb',
      LOCKER_DYNAMODB_TABLENAME: 'my.locks',
      LOCKER_DYNAMODB_REGION: ' us-west-2 ',
    },
    `dynamodb://us-west-2/my.locks?${LAYOUT}`,
  ],
  [
    {
      LOCKER_DYNAMODB_REGION: 'us-west-2',
      LOCKER_DYNAMODB_ENDPOINT: 'http://localhost:8000',
      LOCKER_DYNAMODB_ACCESSKEYID: 'AKIA/1',
      LOCKER_DYNAMODB_SECRETACCESSKEY: 'a+b/c@d:e',
    },
    `dynamodb://AKIA%2F1:a%2Bb%2Fc%40d%3Ae@us-west-2/locks?${LAYOUT}&endpoint=http%3A%2F%2Flocalhost%3A8000`,
  ],
  [{ SPRING_PROFILES_ACTIVE: 'postgres' }, `postgres://postgres@localhost:5432/lockservice?${LAYOUT}`],
  [
    {
      LOCKER_POSTGRES_HOST: 'db.example.com',
      LOCKER_POSTGRES_PORT: '5433',
      LOCKER_POSTGRES_DATABASE: 'my locks',
      LOCKER_POSTGRES_SCHEMA: 'locking',
      LOCKER_POSTGRES_USERNAME: 'lock@user',
      LOCKER_POSTGRES_PASSWORD: 'p:a/s?s#w@rd%',
      LOCKER_POSTGRES_SSL: 'true',
      LOCKER_POSTGRES_CONNECTIONPOOLSIZE: '20',
    },
    `postgres://lock%40user:p%3Aa%2Fs%3Fs%23w%40rd%25@db.example.com:5433/my%20locks?${LAYOUT}&schema=locking&sslmode=require`,
  ],
  [
    { LOCKER_POSTGRES_HOST: '::1', LOCKER_POSTGRES_SSL: 'false' },
    `postgres://postgres@[::1]:5432/lockservice?${LAYOUT}`,
  ],
  [
    { LOCKER_POSTGRES_HOST: 'db', LOCKER_POSTGRES_TABLENAME: 'My_Locks' },
    `postgres://postgres@db:5432/lockservice?${LAYOUT}&table=my_locks`,
  ],
  [
    { LOCKER_POSTGRES_SCHEMA: 'public', LOCKER_POSTGRES_TABLENAME: 'locking.my_locks' },
    `postgres://postgres@localhost:5432/lockservice?${LAYOUT}&schema=locking&table=my_locks`,
  ],
  [{ SPRING_PROFILES_ACTIVE: 'memory', LOCKER_ETCD_ENDPOINTS: 'http://localhost:2379' }, 'memory:'],
  [
    { 'spring.profiles.active': 'dynamodb', 'locker.dynamodb.table-name': 'my-locks' },
    `dynamodb://us-east-1/my-locks?${LAYOUT}`,
  ],
  [{ SPRING_PROFILES_ACTIVE: 'etcd' }, `etcd://localhost:2379?${LAYOUT}&prefix=locks%2F`],
  [
    {
      LOCKER_ETCD_ENDPOINTS: 'http://etcd-1:2379, http://etcd-2',
      LOCKER_ETCD_KEYPREFIX: 'my-',
      LOCKER_ETCD_AUTH_USERNAME: 'locks',
      LOCKER_ETCD_AUTH_PASSWORD: 'p@ss',
    },
    `etcd://locks:p%40ss@etcd-1:2379,etcd-2:2379?${LAYOUT}&prefix=my-`,
  ],
  [
    { LOCKER_ETCD_ENDPOINTS: 'http://[::1]:23790', LOCKER_ETCD_TLS_ENABLED: 'true' },
    `etcds://[::1]:23790?${LAYOUT}&prefix=locks%2F`,
  ],
  [{ SPRING_PROFILES_ACTIVE: 'firestore' }, `firestore:///locks?${LAYOUT}`],
  [
    {
      'google.cloud.project': 'my-project',
      'locker.firestore.collection': 'my-locks',
      'locker.firestore.database': 'second',
    },
    `firestore://my-project/my-locks?${LAYOUT}&database=second`,
  ],
];

const WRONG: readonly (readonly [Environment, RegExp])[] = [
  [{ LOCKER_DYNAMODB_REGION: 'US East' }, /^LOCKER_DYNAMODB_REGION has to be a region/],
  [{ LOCKER_DYNAMODB_TABLENAME: 'a/b' }, /^LOCKER_DYNAMODB_TABLENAME/],
  [{ LOCKER_DYNAMODB_ACCESSKEYID: 'topsecret' }, /belong together/],
  [{ LOCKER_DYNAMODB_SECRETACCESSKEY: 'topsecret' }, /belong together/],
  [{ LOCKER_DYNAMODB_ENDPOINT: 'topsecret:8000' }, /^LOCKER_DYNAMODB_ENDPOINT has to be an http/],
  [{ LOCKER_DYNAMODB_ENDPOINT: 'http://topsecret:topsecret@host' }, /without user and password/],
  [{ LOCKER_POSTGRES_PORT: 'topsecret' }, /^LOCKER_POSTGRES_PORT/],
  [{ LOCKER_POSTGRES_PORT: '0' }, /^LOCKER_POSTGRES_PORT/],
  [{ LOCKER_POSTGRES_HOST: 'topsecret@host/x' }, /^LOCKER_POSTGRES_HOST/],
  [{ LOCKER_POSTGRES_TABLENAME: 'topsecret; DROP' }, /^LOCKER_POSTGRES_TABLENAME has to be a name/],
  [{ LOCKER_POSTGRES_SCHEMA: 'topsecret.a' }, /^LOCKER_POSTGRES_SCHEMA has to be a name/],
  [{ LOCKER_POSTGRES_SSL: 'topsecret' }, /^LOCKER_POSTGRES_SSL has to be true or false/],
  [{ AUTHENTICATION_DISABLED: 'topsecret' }, /^AUTHENTICATION_DISABLED has to be true or false/],
  [{ JWT_JWKS: 'topsecret' }, /^JWT_JWKS has to be an http/],
  [
    { LOCKER_POSTGRES_HOST: 'db', LOCKER_DYNAMODB_REGION: 'eu-west-1' },
    /more than one store.*SPRING_PROFILES_ACTIVE/,
  ],
  [{ SPRING_PROFILES_ACTIVE: 'memory,postgres' }, /more than one store/],
  [
    { LOCKER_DYNAMODB_TABLE: 'topsecret' },
    /^LOCKER_DYNAMODB_TABLE is not a setting of LockServiceCentral.*TABLENAME/,
  ],
  [{ LOCKER_POSTGRES_USER: 'topsecret' }, /^LOCKER_POSTGRES_USER is not a setting.*USERNAME/],
  [{ LOCKER_ETCD_ENDPOINTS: 'topsecret' }, /^LOCKER_ETCD_ENDPOINTS has to be a list of URLs/],
  [{ LOCKER_ETCD_ENDPOINTS: 'http://topsecret:x@host' }, /^LOCKER_ETCD_ENDPOINTS has to be a list of URLs/],
  [{ LOCKER_ETCD_ENDPOINTS: 'http://a:1,https://topsecret:2' }, /^LOCKER_ETCD_ENDPOINTS has to be all https/],
  [{ LOCKER_ETCD_TLS_CLIENTCERTPATH: 'topsecret' }, /cannot present a client certificate/],
  [{ LOCKER_ETCD_PREFIX: 'topsecret' }, /^LOCKER_ETCD_PREFIX is not a setting.*KEYPREFIX/],
  [{ LOCKER_FIRESTORE_COLLECTION: 'topsecret/b' }, /LOCKER_FIRESTORE_COLLECTION the name of a collection/],
  [{ LOCKER_REDIS_HOST: 'topsecret' }, /^LOCKER_REDIS_HOST is not a setting.*stores are memory, dynamodb/],
];

describe('the settings of LockServiceCentral', () => {
  it('become the URL of a store', () => {
    for (const [environment, url] of STORES)
      expect([environment, storeOf(environment)]).toEqual([environment, url]);
  });

  it('the URL of a database is one that openStore takes', async () => {
    for (const [, url] of STORES.filter(([, text]) => /^(memory|postgres|etcd)/.test(text))) {
      const store = await openStore(url);
      await store.close();
    }
  });

  it('of etcd that have no effect are named', () => {
    const { store, notes } =
      centralSettings({
        LOCKER_ETCD_ENDPOINTS: 'https://etcd-1:2379',
        LOCKER_ETCD_REQUESTTIMEOUTMS: '5000',
        LOCKER_ETCD_MAXRETRIES: '3',
        LOCKER_ETCD_TLS_CACERTPATH: '/etc/ca.pem',
      }) ?? {};
    expect(store).toBe(`etcds://etcd-1:2379?${LAYOUT}&prefix=locks%2F`);
    expect(notes).toEqual([
      expect.stringContaining('NODE_EXTRA_CA_CERTS'),
      'LOCKER_ETCD_REQUESTTIMEOUTMS: not used.',
      'LOCKER_ETCD_MAXRETRIES: not used.',
    ]);
  });

  it('what is wrong is named, and no value is repeated', () => {
    for (const [environment, words] of WRONG) {
      expect(() => centralSettings(environment)).toThrow(words);
      expect(() => centralSettings(environment)).not.toThrow(/topsecret/);
    }
  });

  it('an environment that says nothing of it gives nothing', () => {
    expect(centralSettings({})).toBeNull();
    expect(centralSettings({ PATH: '/bin', LOCKER_POSTGRES_HOST: ' ', JWT_ISSUER: '' })).toBeNull();
    expect(centralSettings({ SPRING_PROFILES_ACTIVE: 'prod' })).toBeNull();
  });

  it('tokens are asked for with an issuer or a JWKS, else nobody is let in unless that was switched off', () => {
    const issuer = 'https://issuer.example.com';
    const jwks = 'https://issuer.example.com/keys';
    const audience = 'locks';
    expect(authOf({ JWT_ISSUER: issuer })).toEqual({ kind: 'jwt', issuer });
    expect(authOf({ JWT_JWKS: jwks, JWT_AUDIENCE: audience })).toEqual({ kind: 'jwt', jwks, audience });
    expect(authOf({ AUTHENTICATION_DISABLED: 'TRUE' })).toEqual({ kind: 'disabled' });
    expect(authOf({ AUTHENTICATION_DISABLED: 'false', SPRING_PROFILES_ACTIVE: 'memory' })).toEqual({
      kind: 'unset',
    });
    const both = centralSettings({ AUTHENTICATION_DISABLED: 'true', JWT_ISSUER: issuer });
    expect(both).toMatchObject({ store: null, auth: { kind: 'jwt', issuer } });
    expect(both?.notes.join()).toMatch(/^AUTHENTICATION_DISABLED: not used/);
    const alone = centralSettings({ JWT_AUDIENCE: audience });
    expect(alone).toMatchObject({ auth: { kind: 'unset' } });
    expect(alone?.notes.join()).toMatch(/^JWT_AUDIENCE: not used/);
  });

  it('SERVER_PORT and SERVER_ADDRESS say where to listen, beside other settings of it', () => {
    const where = { SERVER_PORT: '9090', SERVER_ADDRESS: '0.0.0.0' };
    expect(centralSettings({ ...where, SPRING_PROFILES_ACTIVE: 'memory' })).toMatchObject({
      port: '9090',
      address: '0.0.0.0',
    });
    // Other software has variables of these names, too.
    expect(centralSettings(where)).toBeNull();
  });

  it('what has no effect here is said', () => {
    const notes = (environment: Environment): string => centralSettings(environment)?.notes.join('\n') ?? '';
    expect(notes({ LOCKER_POSTGRES_HOST: 'db', LOCKER_POSTGRES_TABLENAME: 'my_locks' })).toBe('');
    expect(notes({ LOCKER_POSTGRES_HOST: 'db', LOCKER_POSTGRES_CONNECTIONPOOLSIZE: '20' })).toBe(
      'LOCKER_POSTGRES_CONNECTIONPOOLSIZE: not used.',
    );
    expect(notes({ SPRING_PROFILES_ACTIVE: 'memory', LOCKER_ETCD_ENDPOINTS: 'x' })).toMatch(
      /^LOCKER_ETCD_\*: not used/,
    );
    expect(notes({ SPRING_PROFILES_ACTIVE: 'dynamodb' })).toBe('');
    expect(notes({ SPRING_CONFIG_LOCATION: '/etc/locks.properties' })).toMatch(
      /^SPRING_CONFIG_LOCATION: not read\. Name a file of properties with --config/,
    );
    expect(notes({ SPRING_PROFILES_ACTIVE: 'memory', SERVER_SSL_ENABLED: 'true' })).toBe(
      'SERVER_SSL_ENABLED: not used.',
    );
  });
});
