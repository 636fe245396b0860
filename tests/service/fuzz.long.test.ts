import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { usePlace } from '../cli/holdfast.js';
import { Findings } from './findings.js';
import { type Principals, principalsAt } from './principals.js';
import { KEPT, KEPT_HOLD, NAMESPACES, Requests } from './requests.js';
import { ask, connections, type Served, serve } from './served.js';
import { Wire } from './wire.js';

const place = usePlace();
const COUNTS = { 'memory:': 70_000, 'sqlite:fuzz.db': 30_000 };
const NONSENSE = 200;
const WIRES = 32;
/** Streams, and waits that were made long, are left after this; nothing else on a busy machine. */
const PATIENCE_MS = 1_000;
const UNTIL_MS = 200_000;

type Call = (method: string, path: string, body?: object) => Promise<{ readonly [name: string]: unknown }>;

/** With limits so wide that they never answer in place of a handler. */
async function served(store: string, { args }: Principals): Promise<Served & { stderr: () => string }> {
  const limits = { requestsPerSecond: 1e9, requestBurst: 1e9, held: 1e9, heldOfKey: 1e9, waiters: 1e9 };
  const config = join(place.folder, 'service.json');
  writeFileSync(config, JSON.stringify({ principalLimits: limits }));
  const started = await serve(place, [...args, '--config', config], { HOLDFAST_STORE: store });
  let stderr = '';
  started.running.child.stderr?.on('data', (chunk) => {
    stderr += chunk;
  });
  return { ...started, stderr: () => stderr };
}

function callerAt(url: string, credential: string | null): Call {
  const headers = { authorization: `Bearer ${credential}`, 'content-type': 'application/json' };
  return async (method, path, body) => {
    const answer = await fetch(url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    expect(answer.status).toBe(200);
    return (await answer.json()) as { readonly [name: string]: unknown };
  };
}

/** Locks that no stranger may move, be it with the right hold; the last one of each namespace is of `/v1`. */
async function keep(call: Call): Promise<() => Promise<unknown[]>> {
  const paths = NAMESPACES.flatMap((space) =>
    Array.from({ length: KEPT }, (_, at) => [space, `kept-${at}`] as const),
  );
  for (const [space, name] of paths) {
    const metadata = { job: `inside-${space}` };
    const body = { hold: `${KEPT_HOLD}.1`, ttl: '1h', owner: `inside-${space}`, metadata };
    if (name !== `kept-${KEPT - 1}`) await call('POST', `/v2/locks/${space}/${name}/acquire`, body);
    else {
      const lease = { instanceId: KEPT_HOLD, leaseDuration: 3_600 };
      await call('POST', `/v1/${space}/lock/${name}/acquire`, lease);
    }
  }
  return () =>
    Promise.all(
      paths.map(async ([space, name]) => ({ ...(await call('GET', `/v2/locks/${space}/${name}`)), now: 0 })),
    );
}

async function storm(port: number, count: number, requests: Requests, findings: Findings): Promise<void> {
  const deadline = Date.now() + UNTIL_MS;
  let left = count;
  async function one(wire: Wire): Promise<void> {
    while (left > 0 && Date.now() < deadline) {
      left -= 1;
      const fuzzed = requests.next();
      findings.note(fuzzed, await wire.send(fuzzed.bytes, PATIENCE_MS));
    }
    wire.close();
  }
  await Promise.all(Array.from({ length: WIRES }, () => one(new Wire(port))));
  expect(left).toBe(0);
  let nonsense = NONSENSE;
  async function gibber(): Promise<void> {
    while (nonsense-- > 0) {
      const wire = new Wire(port);
      const fuzzed = requests.nonsense();
      findings.note(fuzzed, await wire.send(Buffer.from(fuzzed.bytes, 'latin1'), PATIENCE_MS));
      wire.close();
    }
  }
  await Promise.all(Array.from({ length: WIRES }, gibber));
}

for (const [store, count] of Object.entries(COUNTS)) {
  it(`${count} requests of everybody on ${store} no 500, no crash, nothing secret anywhere, nothing of others changed`, {
    timeout: 300_000,
  }, async () => {
    const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);
    console.log(`seed ${seed}`);
    const principals = await principalsAt(place);
    const { all, boss } = principals;
    const { url, running, stderr } = await served(store, principals);
    const call = callerAt(url, boss.credential);
    const kept = await keep(call);
    const before = await kept();
    const findings = new Findings(all);
    await storm(Number(new URL(url).port), count, new Requests(seed, all), findings);
    const { statuses, holds, list } = findings;
    console.log(Object.fromEntries([...statuses].sort()), `${holds.size} holds`);
    expect(list).toEqual([]);
    expect(await kept()).toEqual(before);
    expect(statuses.get('5xx') ?? 0).toBeLessThan(count / 1_000);
    // Wrong requests end at the door; what is behind it has to be met, too.
    expect(statuses.get('2xx')).toBeGreaterThan(count / 4);
    expect(statuses.get('4xx')).toBeGreaterThan(count / 5);
    expect(holds.size).toBeGreaterThan(count / 200);

    const authorization = `Bearer ${boss.credential}`;
    const metrics = await (await fetch(`${url}/metrics`, { headers: { authorization } })).text();
    expect(metrics).toContain('holdfast_http');
    expect(findings.tells(metrics) || /shop-|inside-|stranger-/.test(metrics)).toBe(false);

    const agent = connections();
    expect((await ask(agent, 'GET', `${url}/healthz`)).status).toBe(200);
    agent.destroy();
    const { hold } = await call('POST', '/v2/locks/after/all/acquire', { ttl: '30s' });
    expect(await call('POST', '/v2/locks/after/all/release', { hold })).toMatchObject({ released: true });

    running.kill('SIGTERM');
    const { status, stdout } = await running.ended;
    const lines = stdout.split('\n').filter((line) => line !== '');
    expect(status).toBe(0);
    expect(lines.filter((line) => (JSON.parse(line) as { level: number }).level >= 50)).toEqual([]);
    expect(lines.length).toBeGreaterThan(count);
    expect(findings.tells(stderr())).toBe(false);
    expect(lines.filter((line) => findings.tells(line) || line.includes('inside-'))).toEqual([]);
  });
}
