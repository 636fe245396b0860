import { posix } from 'node:path';
import { describe, expect, it } from 'vitest';
import { importsOf } from '../code.js';
import { matching, read } from '../tree.js';

/**
 * Who may import whom. The lock is pure; time is around it; a store knows the lock and the clock, and never the
 * engine, so that adding a store cannot touch waiting, and adding a primitive cannot touch a store.
 */
const CLIENTS = [
  'ioredis',
  'iovalkey',
  'redis',
  'pg',
  'postgres',
  'mysql2/promise',
  '@aws-sdk/client-dynamodb',
  '@google-cloud/firestore',
  '@nats-io/transport-node',
];

/** From the lowest layer to the highest. The engine is `store-client`, `queue` and `lease`, each on the one before. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  protocol: [],
  time: [],
  clock: ['node:', 'time'],
  'linked-list': [],
  'timer-queue': ['clock'],
  stores: ['node:', 'protocol', 'clock', '@photostructure/sqlite', ...CLIENTS],
  'store-client': ['protocol', 'clock', 'linked-list', 'timer-queue'],
  queue: ['protocol', 'clock', 'linked-list', 'timer-queue', 'store-client'],
  engine: ['clock', 'store-client', 'queue'],
  'lock-events': ['protocol'],
  api: ['protocol', 'lock-events'],
  fences: ['protocol', 'time', 'api'],
  lease: ['node:', 'protocol', 'clock', 'timer-queue', 'store-client', 'queue', 'api'],
  arguments: ['protocol', 'queue', 'api', 'lease'],
  primitives: ['protocol', 'queue', 'api', 'lease', 'arguments'],
  inspection: ['protocol', 'api', 'lease', 'arguments', 'primitives'],
  'close-on': ['protocol', 'api'],
  locks: [
    'node:',
    'protocol',
    'clock',
    'queue',
    'api',
    'lease',
    'arguments',
    'primitives',
    'inspection',
    'close-on',
  ],
  schedule: ['node:', 'protocol', 'api', 'lease', 'arguments', 'primitives', 'locks'],
  telemetry: ['protocol', 'api', '@opentelemetry/api', 'prom-client'],
  testkit: ['node:', 'protocol', 'clock', 'api', 'locks'],
  'open-store': ['protocol', 'stores'],
  env: ['protocol', 'api', 'locks', 'open-store'],
  index: ['protocol', 'api', 'clock', 'lease', 'locks', 'open-store'],
};

/**
 * The same for the service, of its own files. Waiting knows nothing of HTTP, the parts for every request nothing of who
 * may do what, and neither API anything of the other.
 */
const SERVICE_MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  clock: [],
  'service-events': [],
  'forget-oldest': [],
  waiting: ['clock', 'service-events', 'forget-oldest'],
  history: ['clock', 'service-events', 'forget-oldest'],
  http: ['clock', 'service-events', 'waiting', 'history'],
  auth: ['clock', 'service-events', 'forget-oldest', 'http'],
  openapi: ['http'],
  health: ['http', 'openapi'],
  dashboard: ['service-events', 'http'],
  metrics: ['clock', 'service-events', 'http', 'openapi'],
  v1: ['clock', 'forget-oldest', 'http', 'waiting', 'openapi'],
  v2: ['clock', 'history', 'http', 'waiting', 'openapi'],
  config: ['auth', 'http', 'v1'],
  service: [
    'clock',
    'service-events',
    'history',
    'http',
    'waiting',
    'openapi',
    'health',
    'dashboard',
    'metrics',
    'v1',
    'v2',
  ],
  'store-check': ['clock', 'service'],
  'log-output': ['clock'],
  'service-log': ['clock', 'log-output'],
  serve: ['clock', 'auth', 'http', 'config', 'service', 'store-check', 'log-output', 'service-log'],
  index: ['auth', 'service-events', 'config', 'http', 'log-output', 'serve', 'service', 'v1'],
};

/** `queue/waiter.ts` → `queue`, `locks.ts` → `locks`. */
function layerOf(path: string): string {
  return path.replace(/\.[jt]s$/, '').split('/')[0] as string;
}

function whatIsImported(file: string, specifier: string): string {
  if (specifier.startsWith('.')) return layerOf(posix.join(posix.dirname(file), specifier));
  return specifier.startsWith('node:') ? 'node:' : specifier;
}

function keepTheirLayers(
  source: string,
  mayImport: Readonly<Record<string, readonly string[]>>,
  isMeant = (_specifier: string): boolean => true,
): void {
  for (const path of matching(new RegExp(`^${source}.*\\.ts$`))) {
    const file = path.slice(source.length);
    const layer = layerOf(file);
    it(`${file} imports only what ${layer} may import`, () => {
      const allowed = mayImport[layer];
      expect(allowed, `${layer} is no layer yet: say above what it may import`).toBeDefined();
      const wrong = importsOf(read(path))
        .filter(isMeant)
        .filter((specifier) => {
          const imported = whatIsImported(file, specifier);
          return imported !== layer && !allowed?.includes(imported);
        });
      expect(wrong).toEqual([]);
    });
  }
}

describe('the layers of the library', () => keepTheirLayers('packages/holdfast/src/', MAY_IMPORT));

describe('the stores', () => {
  it('load a client package only to open a URL, or for the commands of a client: users pass their own', () => {
    const loading = matching(/^packages\/holdfast\/src\/stores\/.*\.ts$/).filter((path) =>
      importsOf(read(path)).some((specifier) => CLIENTS.includes(specifier)),
    );
    expect(loading.filter((path) => !/\/(?:open-client|sdk-commands)\.ts$/.test(path))).toEqual([]);
  });
});

describe('the layers of the service', () =>
  keepTheirLayers('packages/service/src/', SERVICE_MAY_IMPORT, (specifier) => specifier.startsWith('.')));

/**
 * A package that is never published may use what it depends on: no user has to install that. The service is a server,
 * and has what servers need. The command is for everybody: it may start the service, and that is all.
 */
function ownDependencies(home: string): readonly string[] {
  const manifest = JSON.parse(read(`${home}/package.json`)) as {
    private?: boolean;
    dependencies?: Record<string, string>;
  };
  if (home === 'packages/cli') return ['holdfast-service'];
  const may = manifest.private === true || home === 'packages/service';
  return may ? Object.keys(manifest.dependencies ?? {}) : [];
}

describe('the packages around the library', () => {
  for (const path of matching(/^packages\/(?!holdfast\/)[^/]+\/(?:src|bin)\/.*\.[jt]s$/)) {
    it(`${path} imports only its own files and the library's public names`, () => {
      const home = path.split('/').slice(0, 2).join('/');
      const wrong = importsOf(read(path)).filter((specifier) => {
        if (specifier.startsWith('.')) {
          return !posix.join(posix.dirname(path), specifier).startsWith(`${home}/`);
        }
        if (ownDependencies(home).some((name) => specifier === name || specifier.startsWith(`${name}/`)))
          return false;
        return !/^(?:node:|holdfast$|holdfast\/)/.test(specifier);
      });
      expect(wrong).toEqual([]);
    });
  }
});

describe('the command', () => {
  it('loads the service only when it is asked for: that takes longer than all else that it does', () => {
    const eager = matching(/^packages\/cli\/src\/.*\.ts$/).filter((path) =>
      /^(?:import|export) (?!type\b)[^;]*from 'holdfast-service[/']/m.test(read(path)),
    );
    expect(eager).toEqual([]);
  });
});

describe('dependencies', () => {
  it('the library has none at run time', () => {
    const manifest = JSON.parse(read('packages/holdfast/package.json')) as Record<string, unknown>;
    expect(manifest.dependencies ?? {}).toEqual({});
    expect(manifest.optionalDependencies ?? {}).toEqual({});
  });

  it('every peer of the library is optional', () => {
    const manifest = JSON.parse(read('packages/holdfast/package.json')) as {
      peerDependencies?: Record<string, string>;
      peerDependenciesMeta?: Record<string, { optional?: boolean }>;
    };
    for (const peer of Object.keys(manifest.peerDependencies ?? {})) {
      expect(manifest.peerDependenciesMeta?.[peer]?.optional, peer).toBe(true);
    }
  });
});
