import { describe, expect, it } from 'vitest';
import { type ConfigSources, configFrom, type ServiceConfig } from '../../src/config/index.js';
import { SETTINGS, type SettingName } from '../../src/config/settings.js';
import { DEFAULT_LIMITS } from '../../src/http/limits.js';

const from = (sources: Partial<ConfigSources> = {}): ServiceConfig =>
  configFrom({ defaultStore: () => 'memory:', ...sources });
const file = (content: object): string => JSON.stringify(content);

/** For each setting: three values that it may have, and what becomes of them. */
const VALUES: Readonly<Record<SettingName, readonly [string, string, string]>> = {
  store: ['memory:', 'sqlite:a.db', 'sqlite:b.db'],
  host: ['127.0.0.1', '127.0.0.2', '::1'],
  port: ['1', '2', '3'],
  'api-keys': ['a.json', 'b.json', 'c.json'],
  'jwt-issuer': ['https://a.example', 'https://b.example', 'https://c.example'],
  'jwt-audience': ['a', 'b', 'c'],
  'jwt-jwks': ['https://a.example/keys', 'https://b.example/keys', 'https://c.example/keys'],
  'jwt-rights': ['read:a', 'read:b', 'read:c'],
  insecure: ['true', 'false', 'true'],
  'allowed-hosts': ['a.example', '*', 'b.example,c'],
  'tls-cert': ['a.pem', 'b.pem', 'c.pem'],
  'tls-key': ['a.key', 'b.key', 'c.key'],
  'trust-proxy': ['10.0.0.1', '10.0.0.2', '10.0.0.0/8,::1'],
  audit: ['a.jsonl', 'b.jsonl', 'c.jsonl'],
  drain: ['1000ms', '2000ms', '3000ms'],
  'log-level': ['warn', 'error', 'silent'],
};

/** Some go only together with others. */
const TOGETHER: Readonly<Partial<Record<SettingName, Partial<Record<SettingName, string>>>>> = {
  'jwt-issuer': { 'jwt-audience': 'x' },
  'jwt-audience': { 'jwt-issuer': 'https://x.example' },
  'jwt-jwks': { 'jwt-issuer': 'https://x.example', 'jwt-audience': 'x' },
  'jwt-rights': { 'jwt-issuer': 'https://x.example', 'jwt-audience': 'x' },
  'tls-cert': { 'tls-key': 'x.key' },
  'tls-key': { 'tls-cert': 'x.pem' },
};

function valueIn(config: ServiceConfig, name: SettingName): string {
  const {
    store,
    host,
    port,
    apiKeys,
    jwt,
    insecure,
    allowedHosts,
    tls,
    trustProxy,
    audit,
    drainMs,
    logLevel,
  } = config;
  const values: Record<SettingName, unknown> = {
    ...{
      store,
      host,
      port,
      'api-keys': apiKeys,
      insecure,
      audit,
      'log-level': logLevel,
      'trust-proxy': trustProxy,
    },
    ...{ 'allowed-hosts': allowedHosts, drain: `${drainMs}ms` },
    ...{ 'jwt-issuer': jwt?.issuer, 'jwt-audience': jwt?.audience, 'jwt-jwks': jwt?.jwks },
    ...{ 'jwt-rights': jwt?.rights, 'tls-cert': tls?.cert, 'tls-key': tls?.key },
  };
  return String(values[name]);
}

describe('where settings come from', () => {
  for (const { name, variable } of SETTINGS) {
    it(`${name}: the flag counts before ${variable}, and that before the file`, () => {
      const [inFile, inEnvironment, inFlag] = VALUES[name];
      const others = TOGETHER[name] ?? {};
      const all = {
        file: file({ ...others, [name]: inFile }),
        environment: { [variable]: inEnvironment },
        flags: { [name]: inFlag },
      };
      expect(valueIn(from(all), name)).toBe(inFlag);
      expect(valueIn(from({ ...all, flags: {} }), name)).toBe(inEnvironment);
      expect(valueIn(from({ file: all.file }), name)).toBe(inFile);
    });
  }

  it('an empty variable is as good as none', () => {
    expect(from({ file: file({ port: 7 }), environment: { HOLDFAST_PORT: '' } }).port).toBe(7);
  });

  it('without any it is the default store, on loopback, with the default limits', () => {
    expect(from({ defaultStore: () => 'sqlite:here.db' })).toMatchObject({
      ...{ store: 'sqlite:here.db', host: '127.0.0.1', port: 8_080, insecure: false, logLevel: 'info' },
      ...{ apiKeys: null, jwt: null, tls: null, audit: null, limits: DEFAULT_LIMITS, notes: [] },
    });
  });

  it('the default store is not asked for where one is named', () => {
    const defaultStore = (): string => {
      throw new Error('asked');
    };
    expect(from({ defaultStore, flags: { store: 'memory:' } }).store).toBe('memory:');
  });

  it('limits come from the file, one by one', () => {
    const { limits, principalLimits } = from({
      file: file({ limits: { waiters: 7 }, principalLimits: { held: 3 } }),
    });
    expect([limits.waiters, limits.streams]).toEqual([7, DEFAULT_LIMITS.streams]);
    expect([principalLimits.held, principalLimits.waiters]).toEqual([3, 5_000]);
  });
});

describe('the environment of LockServiceCentral', () => {
  it('starts on its table, with the records that it has, for everybody', () => {
    const config = from({
      environment: {
        SPRING_PROFILES_ACTIVE: 'dynamodb',
        LOCKER_DYNAMODB_REGION: 'us-east-1',
        LOCKER_DYNAMODB_TABLENAME: 'my-locks',
        AUTHENTICATION_DISABLED: 'TRUE',
      },
    });
    expect(config.store).toBe('dynamodb://us-east-1/my-locks?layout=lock-service-central');
    expect(config.insecure).toBe(true);
  });

  it('asks for tokens as that did', () => {
    const environment = {
      JWT_ISSUER: 'https://id.example',
      JWT_AUDIENCE: 'locks',
      JWT_JWKS: 'https://id.example/keys',
    };
    expect(from({ environment }).jwt).toEqual({
      ...{ issuer: 'https://id.example', audience: 'locks', jwks: 'https://id.example/keys' },
      rights: ['lock:*'],
    });
    const both = from({ environment: { ...environment, AUTHENTICATION_DISABLED: 'true' } });
    expect([both.insecure, both.notes.join()]).toEqual([
      false,
      expect.stringContaining('AUTHENTICATION_DISABLED'),
    ]);
  });

  it('may be written as properties, and variables count before those', () => {
    const properties =
      'locker.dynamodb.tableName=a-table\nlocker.dynamodb.region=eu-west-1\nserver.port=9090';
    expect(from({ properties })).toMatchObject({
      ...{ store: 'dynamodb://eu-west-1/a-table?layout=lock-service-central', port: 9_090, notes: [] },
    });
    const environment = { LOCKER_DYNAMODB_TABLENAME: 'b-table', LOCKER_DYNAMODB_REGION: ' ' };
    expect(from({ properties, environment }).store).toBe(
      'dynamodb://eu-west-1/b-table?layout=lock-service-central',
    );
  });

  it('where a setting of ours outdoes one of it, that is noted', () => {
    const environment = { SPRING_PROFILES_ACTIVE: 'dynamodb', LOCKER_DYNAMODB_REGION: 'eu-west-1' };
    const named = from({ environment: { ...environment, HOLDFAST_STORE: 'memory:' } });
    expect([named.store, named.notes]).toEqual([
      'memory:',
      ['SPRING_PROFILES_ACTIVE, LOCKER_DYNAMODB_REGION: ignored, because a store is named.'],
    ]);
    const port = from({ environment: { ...environment, SERVER_PORT: '9090', HOLDFAST_PORT: '7070' } });
    expect([port.port, port.notes.join()]).toEqual([7_070, expect.stringContaining('"port" of Holdfast')]);
  });

  it('may leave open whom tokens are made for, as it may there, and that is noted', () => {
    const { jwt, notes } = from({ environment: { JWT_ISSUER: 'https://id.example' } });
    expect(jwt).toMatchObject({ issuer: 'https://id.example', audience: null });
    expect(notes).toEqual([expect.stringContaining('JWT_AUDIENCE is missing')]);
    const open = from({ environment: { JWT_JWKS: 'https://id.example/keys' } });
    expect([open.jwt?.issuer, open.notes.length]).toEqual([null, 2]);
  });

  it('gives tokens the rights that are named, or none', () => {
    const environment = { JWT_ISSUER: 'https://id.example' };
    const rightsFor = (text: string) => from({ environment, flags: { 'jwt-rights': text } }).jwt?.rights;
    expect(rightsFor('read:*, lock:shop')).toEqual(['read:*', 'lock:shop']);
    expect(rightsFor('none')).toEqual([]);
  });

  it('gives every token every lock, as that does; said in words of ours, tokens may do what somebody said', () => {
    const central = from({ environment: { JWT_ISSUER: 'https://id.example', JWT_AUDIENCE: 'locks' } });
    expect([central.jwt?.rights, central.notes]).toEqual([['lock:*'], []]);
    const flags = { 'jwt-issuer': 'https://id.example', 'jwt-audience': 'locks' };
    const own = from({ flags });
    expect([own.jwt?.rights, own.notes.join()]).toEqual([
      [],
      expect.stringContaining('jwt-rights is not set'),
    ]);
    const said = from({ flags: { ...flags, 'jwt-rights': 'none' } });
    expect([said.jwt?.rights, said.notes]).toEqual([[], []]);
  });

  it('counts less than settings of our own, and more than the file', () => {
    const environment = { SPRING_PROFILES_ACTIVE: 'postgres', LOCKER_POSTGRES_HOST: 'db' };
    expect(from({ environment, file: file({ store: 'memory:' }) }).store).toMatch(/^postgres:.*@db:5432/);
    expect(from({ environment: { ...environment, HOLDFAST_STORE: 'memory:' } }).store).toBe('memory:');
  });

  it('names its records on etcd, unless another store is named', () => {
    const environment = { LOCKER_ETCD_ENDPOINTS: 'http://etcd:2379' };
    expect(from({ environment }).store).toMatch(/^etcd:.*layout=lock-service-central/);
    expect(from({ environment, flags: { store: 'memory:' } }).store).toBe('memory:');
  });
});
