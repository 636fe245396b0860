import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { usePlace } from '../cli/holdfast.js';
import { SECRET } from './oddities.js';
import { Requests } from './requests.js';
import { ask, connections, type Served, serve } from './served.js';
import { type Received, Wire } from './wire.js';

const place = usePlace();
const COUNT = 100_000;
const NONSENSE = 400;
const WIRES = 32;
/** Streams, and waits that were made long, are left after this. */
const PATIENCE_MS = 250;
const UNTIL_MS = 200_000;

interface Run {
  readonly statuses: Map<string, number>;
  /** Answers that should never be, and those that tell a secret. */
  readonly findings: string[];
  /** Holds that the service made. */
  readonly holds: Set<string>;
}

/** With limits so wide that they never answer in place of a handler, and a store that takes no time of its own. */
async function served(): Promise<Served & { readonly key: string; readonly stderr: () => string }> {
  const keys = join(place.folder, 'keys.json');
  const made = await place.run(['key', 'create', 'fuzz', '--rights', 'admin:*', '--keys', keys]);
  const wide = { requestsPerSecond: 1e9, requestBurst: 1e9, held: 1e9, heldOfKey: 1e9, waiters: 1e9 };
  const config = join(place.folder, 'service.json');
  writeFileSync(config, JSON.stringify({ principalLimits: wide }));
  const started = await serve(place, ['--keys', keys, '--config', config], { HOLDFAST_STORE: 'memory:' });
  let stderr = '';
  started.running.child.stderr?.on('data', (chunk) => {
    stderr += chunk;
  });
  return { ...started, key: made.stdout.trim(), stderr: () => stderr };
}

function note(
  { statuses, findings, holds }: Run,
  key: string,
  route: string,
  sent: string,
  got: Received,
): void {
  const { status, text } = got;
  const kind = `${Math.floor(status / 100)}xx`;
  statuses.set(kind, (statuses.get(kind) ?? 0) + 1);
  const found = (what: string): void => {
    if (findings.length < 20)
      findings.push(`${what}: ${sent.slice(0, 2_000)}\n→ ${status} ${text.slice(0, 500)}`);
  };
  // A machine so busy that the store was late is told so: asked again, it answers.
  if (status === 503 && text.includes('"code":"unknown"')) return;
  if (status >= 500) found('failed');
  if (text.includes(key)) found('shows the key');
  const isOwn = status === 200 && route.endsWith('acquire');
  const made = isOwn ? /"hold":"([^".]+)/.exec(text)?.[1] : undefined;
  if (made !== undefined && !made.startsWith(SECRET)) holds.add(made);
  // What came from its sender alone may go back to its sender: a grant has its hold, /v1 repeats the instance.
  if (!isOwn && !(status === 200 && route.startsWith('v1')) && text.includes(SECRET)) found('shows a secret');
  if (!isOwn) for (const word of wordsOf(text)) if (holds.has(word)) found('shows a hold');
}

function wordsOf(text: string): string[] {
  return text.match(/[A-Za-z0-9_~-]{20,}/g) ?? [];
}

async function storm(port: number, key: string, requests: Requests): Promise<Run> {
  const run: Run = { statuses: new Map(), findings: [], holds: new Set() };
  const deadline = Date.now() + UNTIL_MS;
  let left = COUNT;
  async function one(wire: Wire): Promise<void> {
    while (left > 0 && Date.now() < deadline) {
      left -= 1;
      const { route, bytes } = requests.next();
      note(run, key, route, bytes, await wire.send(bytes, PATIENCE_MS));
    }
    wire.close();
  }
  await Promise.all(Array.from({ length: WIRES }, () => one(new Wire(port))));
  expect(left).toBe(0);
  let nonsense = NONSENSE;
  async function gibber(): Promise<void> {
    while (nonsense-- > 0) {
      const wire = new Wire(port);
      const bytes = requests.nonsense();
      note(run, key, 'nonsense', bytes, await wire.send(Buffer.from(bytes, 'latin1'), PATIENCE_MS));
      wire.close();
    }
  }
  await Promise.all(Array.from({ length: WIRES }, gibber));
  return run;
}

it('a hundred thousand requests, half of them wrong: no 500, no crash, nothing secret in answers or logs', {
  timeout: 300_000,
}, async () => {
  const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);
  console.log(`seed ${seed}`);
  const { url, running, key, stderr } = await served();
  const { statuses, findings, holds } = await storm(Number(new URL(url).port), key, new Requests(seed, key));
  console.log(Object.fromEntries([...statuses].sort()), `${holds.size} holds`);
  expect(findings).toEqual([]);
  expect(statuses.get('5xx') ?? 0).toBeLessThan(COUNT / 1_000);
  // Wrong requests end at the door; what is behind it has to be met, too.
  expect(statuses.get('2xx')).toBeGreaterThan(COUNT / 4);
  expect(statuses.get('4xx')).toBeGreaterThan(COUNT / 5);
  expect(holds.size).toBeGreaterThan(500);

  const agent = connections();
  expect((await ask(agent, 'GET', `${url}/healthz`)).status).toBe(200);
  agent.destroy();
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const after = `${url}/v2/locks/after/all`;
  const granted = await fetch(`${after}/acquire`, { method: 'POST', headers, body: '{"ttl":"30s"}' });
  const { hold } = (await granted.json()) as { hold: string };
  const released = await fetch(`${after}/release`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ hold }),
  });
  expect(await released.json()).toMatchObject({ released: true, held: true });

  running.kill('SIGTERM');
  const { status, stdout } = await running.ended;
  const lines = stdout.split('\n').filter((line) => line !== '');
  expect(status).toBe(0);
  expect(lines.filter((line) => (JSON.parse(line) as { level: number }).level >= 50)).toEqual([]);
  expect(lines.length).toBeGreaterThan(COUNT);
  expect(`${stdout}${stderr()}`).not.toContain(key);
  expect(lines.filter((line) => line.includes(SECRET))).toEqual([]);
  expect(lines.filter((line) => wordsOf(line).some((word) => holds.has(word)))).toEqual([]);
});
