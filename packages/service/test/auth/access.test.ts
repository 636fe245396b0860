/**
 * Every route × every role × its own or a foreign namespace. The list of routes is the service's own: a route without a
 * row here fails.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createAuth } from '../../src/auth/index.js';
import type { Service } from '../../src/index.js';
import { type Answer, clearScene, listen, type Stage, stage } from '../scene.js';
import { bearer, keyFile } from './issuer.js';

type Who = 'nobody' | 'reader' | 'locker' | 'admin' | 'stranger';
const EVERYBODY: readonly Who[] = ['nobody', 'reader', 'locker', 'admin', 'stranger'];
const OWN = 'own';
const FOREIGN = 'foreign';

/** What a route answers to each, on a namespace that they have their role on, and on one they have none on. */
type Expected = Readonly<Record<Who, number>>;

type Call = (namespace: string, as: Record<string, string>, method?: string) => Promise<Answer>;

interface Row {
  readonly own: Expected;
  readonly foreign: Expected;
  readonly call: Call;
}

let scene: Stage;
let keys: Readonly<Record<Exclude<Who, 'nobody'> | 'god', string>>;
/** Holds taken by the admin of everything, on `held` in both namespaces. */
let holds: Readonly<Record<string, string>>;

const all = (status: number): Expected => ({
  nobody: 401,
  reader: status,
  locker: status,
  admin: status,
  stranger: status,
});
const PUBLIC: Expected = { ...all(200), nobody: 200 };
/** To everybody who is known, as no namespace is named. */
const KNOWN: Expected = all(200);
const READ: Expected = { ...all(200), stranger: 403 };
const LOCK: Expected = { ...all(200), reader: 403, stranger: 403 };
const ADMIN: Expected = { ...all(403), admin: 200 };
const NEVER: Expected = all(403);
/** What the locks of both namespaces are held with. */
const GRANT = { ttl: '30s', owner: 'secret-owner', metadata: { job: 'secret-job' } };

const lockCall =
  (action: string, body: (namespace: string) => object) =>
  (namespace: string, as: Record<string, string>): Promise<Answer> =>
    scene.post(`/v2/locks/${namespace}/held/${action}`, body(namespace), as);
const get =
  (path: (namespace: string) => string): Call =>
  (namespace, as, method = 'GET') =>
    method === 'HEAD' ? head(path(namespace), as) : scene.call(method, path(namespace), undefined, as);
const streamed =
  (path: (namespace: string) => string) =>
  async (namespace: string, as: Record<string, string>): Promise<Answer> => {
    const { status, close } = await listen(scene.url, path(namespace), as);
    close();
    return { status, headers: new Headers(), text: '', body: {} };
  };
const head = async (path: string, as: Record<string, string>): Promise<Answer> => {
  const { status, headers } = await fetch(scene.url + path, { method: 'HEAD', headers: as });
  return { status, headers, text: '', body: {} };
};
let fresh = 0;
/** On a lock that nobody has: another principal's would be 423. */
const v1 =
  (usual: string, action: string, body?: object): Call =>
  (namespace, as, method = usual) => {
    fresh += 1;
    const path = `/v1/${namespace}/lock/fresh-${fresh}${action}`;
    return method === 'HEAD' ? head(path, as) : scene.call(method, path, body, as);
  };
const hold = (namespace: string): string => holds[namespace] ?? '';

const WRITTEN: Readonly<Record<string, Row>> = {
  'POST /v2/locks/:namespace/:name/acquire': {
    own: LOCK,
    foreign: NEVER,
    call: lockCall('acquire', (namespace) => ({ ...GRANT, hold: hold(namespace) })),
  },
  'POST /v2/locks/:namespace/:name/renew': {
    own: LOCK,
    foreign: NEVER,
    call: lockCall('renew', (namespace) => ({ ttl: '30s', hold: hold(namespace) })),
  },
  'POST /v2/locks/:namespace/:name/release': {
    own: LOCK,
    foreign: NEVER,
    call: lockCall('release', (namespace) => ({ hold: hold(namespace) })),
  },
  'POST /v2/locks/:namespace/:name/evict': {
    own: ADMIN,
    foreign: NEVER,
    call: lockCall('evict', () => ({})),
  },
  'GET /v2/locks/:namespace/:name': {
    own: READ,
    foreign: NEVER,
    call: get((namespace) => `/v2/locks/${namespace}/held`),
  },
  'GET /v2/locks': {
    own: READ,
    foreign: NEVER,
    call: get((namespace) => `/v2/locks?namespace=${namespace}`),
  },
  'GET /v2/history': {
    own: READ,
    foreign: NEVER,
    call: get((namespace) => `/v2/history?namespace=${namespace}`),
  },
  'GET /v2/history/summary': {
    own: READ,
    foreign: NEVER,
    call: get((namespace) => `/v2/history/summary?namespace=${namespace}`),
  },
  'GET /v2/probe': { own: KNOWN, foreign: KNOWN, call: get(() => '/v2/probe') },
  // Permission is checked key by key: see below.
  'POST /v2/batch': {
    own: KNOWN,
    foreign: KNOWN,
    call: (_namespace, as) => scene.post('/v2/batch', { commands: [] }, as),
  },
  'GET /v2/events': {
    own: READ,
    foreign: NEVER,
    call: streamed((namespace) => `/v2/events?namespace=${namespace}`),
  },
  'GET /v2/inboxes/:id/events': {
    own: KNOWN,
    foreign: KNOWN,
    call: streamed(() => '/v2/inboxes/an-inbox-of-nobody/events'),
  },
  'GET /v1/:namespace/lock/:lockName': { own: READ, foreign: NEVER, call: v1('GET', '') },
  'POST /v1/:namespace/lock/:lockName/acquire': {
    own: LOCK,
    foreign: NEVER,
    call: v1('POST', '/acquire', { instanceId: 'instance-1', leaseDuration: 30 }),
  },
  'POST /v1/:namespace/lock/:lockName/renew': {
    own: { ...LOCK, locker: 423, admin: 423 },
    foreign: NEVER,
    call: v1('POST', '/renew', { instanceId: 'instance-1', leaseDuration: 30 }),
  },
  'POST /v1/:namespace/lock/:lockName/release': {
    own: LOCK,
    foreign: NEVER,
    call: v1('POST', '/release', { instanceId: 'instance-1' }),
  },
  'GET /': { own: PUBLIC, foreign: PUBLIC, call: get(() => '/') },
  'GET /dashboard/:file': { own: PUBLIC, foreign: PUBLIC, call: get(() => '/dashboard/main.js') },
  'GET /dashboard/session': {
    own: KNOWN,
    foreign: KNOWN,
    call: get((namespace) => `/dashboard/session?namespace=${namespace}`),
  },
  'GET /actuator/health': { own: PUBLIC, foreign: PUBLIC, call: get(() => '/actuator/health') },
  'HEAD /actuator/health': {
    own: PUBLIC,
    foreign: PUBLIC,
    call: (_namespace, as) => head('/actuator/health', as),
  },
  'GET /healthz': { own: PUBLIC, foreign: PUBLIC, call: get(() => '/healthz') },
  // Counts of everything, which name no key.
  'GET /metrics': { own: NEVER, foreign: NEVER, call: get(() => '/metrics') },
  'GET /readyz': { own: PUBLIC, foreign: PUBLIC, call: get(() => '/readyz') },
  'GET /v2/openapi.json': { own: PUBLIC, foreign: PUBLIC, call: get(() => '/v2/openapi.json') },
  'GET /v2/docs': { own: PUBLIC, foreign: PUBLIC, call: get(() => '/v2/docs') },
};

/** HEAD answers whom GET answers, with the same status. A stream has no HEAD. */
const HEADS = Object.entries(WRITTEN)
  .filter(([route]) => route.startsWith('GET ') && !route.endsWith('/events'))
  .map(([route, row]): [string, Row] => [
    route.replace('GET', 'HEAD'),
    { ...row, call: (namespace, as) => row.call(namespace, as, 'HEAD') },
  ]);
const ROWS: Readonly<Record<string, Row>> = { ...WRITTEN, ...Object.fromEntries(HEADS) };

const headersOf = (who: Who): Record<string, string> => (who === 'nobody' ? {} : bearer(keys[who]));

/** Before it is ready, so that every route is seen. */
async function routesOf({ app }: Service): Promise<string[]> {
  const routes: string[] = [];
  app.addHook('onRoute', ({ method, url }) => {
    for (const name of [method].flat()) routes.push(`${name} ${url}`);
  });
  await app.ready();
  return routes.sort();
}

beforeAll(async () => {
  const file = await keyFile({
    reader: [`read:${OWN}`],
    locker: [`lock:${OWN}`],
    admin: [`admin:${OWN}`],
    stranger: ['admin:elsewhere'],
    god: ['admin:*'],
  });
  keys = file.keys;
  scene = await stage({ auth: createAuth({ apiKeys: file.path }) });
});
afterAll(clearScene);

beforeEach(async () => {
  const taken = async (namespace: string): Promise<readonly [string, string]> => {
    await scene.post(`/v2/locks/${namespace}/held/evict`, {}, bearer(keys.god));
    const answer = await scene.post(`/v2/locks/${namespace}/held/acquire`, GRANT, bearer(keys.god));
    return [namespace, String(answer.body.hold)];
  };
  holds = Object.fromEntries([await taken(OWN), await taken(FOREIGN)]);
});

describe('every route', () => {
  it('has a row in the table of this test, and every row a route', async () => {
    const { createService } = await import('../../src/index.js');
    const { memoryStore } = await import('holdfast/memory');
    const service = createService({ store: memoryStore() });
    const routes = await routesOf(service);
    await service.close();
    expect(routes).toEqual(Object.keys(ROWS).sort());
  });

  for (const [route, row] of Object.entries(ROWS)) {
    for (const [namespace, expected] of [
      [OWN, row.own],
      [FOREIGN, row.foreign],
    ] as const) {
      it(`${route} on a namespace that is ${namespace} lets in whom it should`, async () => {
        const found: Partial<Record<Who, number>> = {};
        for (const who of EVERYBODY) {
          const { status, text } = await row.call(namespace, headersOf(who));
          found[who] = status;
          const mayRead = who !== 'nobody' && who !== 'stranger' && namespace === OWN;
          if (!mayRead) expect([who, /secret-(?:owner|job)/.test(text)]).toEqual([who, false]);
        }
        expect(found).toEqual(expected);
      });
    }
  }
});

describe('a foreign namespace', () => {
  const HOLD = { process: 'a-process-of-ours', number: 1 };

  it('is refused, in the same words whether its locks are held or free, and is not in lists', async () => {
    const looks = (namespace: string): string[] => [
      `/v2/locks/${namespace}/held`,
      `/v2/locks?namespace=${namespace}`,
      `/v2/locks?key=${namespace}%2Fheld`,
      `/v2/events?namespace=${namespace}`,
    ];
    const refusals = async (namespace: string): Promise<unknown> => {
      const found = [];
      for (const path of looks(namespace)) {
        const { status, body } = await scene.call('GET', path, undefined, headersOf('admin'));
        found.push([status, body.code, body.detail]);
      }
      return found;
    };
    const refused = [403, 'forbidden', 'key:admin has no right "read" on this namespace.'];
    expect(await refusals(FOREIGN)).toEqual(Array(4).fill(refused));
    expect(await refusals('empty')).toEqual(Array(4).fill(refused));
    for (const query of [`prefix=${FOREIGN}`, `after=${FOREIGN}%2Fa`]) {
      const { body } = await scene.call('GET', `/v2/locks?${query}`, undefined, headersOf('admin'));
      expect([query, body.next, JSON.stringify(body.locks).includes(FOREIGN)]).toEqual([query, null, false]);
    }
    const { body } = await scene.call('GET', '/v2/locks', undefined, headersOf('reader'));
    expect((body.locks as { key: string }[]).map(({ key }) => key.split('/')[0])).toContain(OWN);
    expect(JSON.stringify(body)).not.toContain(FOREIGN);
  });

  it('is refused in the same words whether anything is there or not', async () => {
    const detail = async (path: string): Promise<unknown> => {
      const body = { ttl: '30s', hold: 'a-hold-of-nobody.1' };
      return (await scene.post(`/v2/locks/${path}/acquire`, body, headersOf('admin'))).body.detail;
    };
    expect(await detail(`${FOREIGN}/held`)).toBe(await detail('empty/held'));
  });

  it('cannot be reached by another spelling of its name', async () => {
    const spellings = [
      'FOREIGN',
      '%66oreign',
      'foreign%2Fheld',
      'own%2F..%2Fforeign',
      'own/../foreign',
      'own%00',
      ' own',
      'own%20',
    ];
    for (const spelling of spellings) {
      const path = `/v2/locks/${spelling}/held/evict`;
      const { status } = await scene.post(path, {}, headersOf('admin'));
      expect([spelling, [400, 403, 404].includes(status)]).toEqual([spelling, true]);
    }
    const held = await scene.call('GET', `/v2/locks/${FOREIGN}/held`, undefined, bearer(keys.god));
    expect(held.body.holders).toHaveLength(1);
  });

  it('is refused key by key in a batch, for every command; evict needs an admin', async () => {
    const claim = {
      kind: 'claim',
      hold: HOLD,
      owner: 'o',
      permits: 1,
      capacity: 1,
      ttlMs: 10_000,
      queue: false,
      inbox: null,
      metadata: null,
    };
    const commands = (key: string): object[] => [
      { ...claim, key },
      { kind: 'renew', key, hold: HOLD, ttlMs: 10_000, block: false },
      { kind: 'release', key, hold: HOLD, minHoldMs: 0 },
      { kind: 'evict', key, upToToken: 0 },
    ];
    const codesFor = async (who: Who, key: string): Promise<unknown> => {
      const { body } = await scene.post('/v2/batch', { commands: commands(key) }, headersOf(who));
      const replies = body.replies as { kind?: string; problem?: { code: string } }[];
      return replies.map(({ problem }) => problem?.code ?? 'answered');
    };
    const refused = Array<string>(4).fill('forbidden');
    const answered = Array<string>(4).fill('answered');
    for (const key of ['foreign/a', 'a', '/a', 'own', 'owned/a', 'ow/n', 'OWN/a']) {
      for (const who of ['reader', 'locker', 'admin', 'stranger'] as const) {
        expect([who, key, await codesFor(who, key)]).toEqual([who, key, refused]);
      }
    }
    expect(await codesFor('reader', 'own/a')).toEqual(refused);
    expect(await codesFor('locker', 'own/a')).toEqual([...answered.slice(1), 'forbidden']);
    expect(await codesFor('admin', 'own/a')).toEqual(answered);
  });

  it('nobody speaks for another by a hold of /v1 in a batch, unless they are admin there', async () => {
    const hold = { process: 'v1:guessed', number: 1 };
    const commands = [{ kind: 'release', key: 'own/held', hold, minHoldMs: 0 }];
    const first = async (who: Who): Promise<unknown> => {
      const { body } = await scene.post('/v2/batch', { commands }, headersOf(who));
      const [reply] = body.replies as { kind?: string; problem?: { code: string } }[];
      return reply?.problem?.code ?? 'answered';
    };
    expect([await first('locker'), await first('admin')]).toEqual(['forbidden', 'answered']);
  });

  it('does not show in the events', async () => {
    const stream = await listen(scene.url, '/v2/events', headersOf('reader'));
    while (!stream.events.some(({ event }) => event === 'ready')) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    expect(stream.text()).toContain('own/held');
    expect(stream.text()).not.toContain(FOREIGN);
    stream.close();
  });
});
