/** What a stranger does with the document: generate a client, compile a program against it, run the program. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { generateSource } from 'oazapfts';
import { afterEach, expect, it } from 'vitest';
import { createAuth } from '../../src/auth/index.js';
import { keyFile } from '../auth/issuer.js';
import { atTheEnd, clearScene, stage } from '../scene.js';

afterEach(clearScene);

const MODULES = fileURLToPath(new URL('../../../../node_modules', import.meta.url));
const COMPILER = join(MODULES, 'typescript/bin/tsc');
const execute = promisify(execFile);
/** The generator and the compiler on a machine that may be busy. */
const TIME_MS = 120_000;

/** Narrows by status: what the document does not describe does not compile. */
const PROGRAM = `
import * as holdfast from './client.js';

const [, , url = '', apiKey = ''] = process.argv;
holdfast.defaults.baseUrl = url;
holdfast.defaults.headers = { authorization: 'Bearer ' + apiKey };
const lock = ['reports', 'daily'] as const;

function fail(answer: { readonly status: number }): never {
  throw new Error('unexpected status ' + answer.status);
}

const first = await holdfast.acquire(...lock, { ttl: '30s', owner: 'first' });
if (first.status !== 200) fail(first);

const busy = await holdfast.acquire(...lock, { ttl: '30s' });
if (busy.status !== 423) fail(busy);
const [holder] = busy.data.holders;
const owner: string | undefined = holder?.owner;
const freeInMs: number = busy.data.freeInMs;

const waiting = holdfast.acquire(...lock, { ttl: '30s', wait: '20s', owner: 'second' });
let waiters = 0;
for (let looks = 0; looks < 1000 && waiters === 0; looks += 1) {
  const seen = await holdfast.inspect(...lock);
  if (seen.status !== 200) fail(seen);
  waiters = seen.data.waiting;
}

const renewed = await holdfast.renew(...lock, { hold: first.data.hold, ttl: '60s' });
if (renewed.status !== 200) fail(renewed);
const released = await holdfast.release(...lock, { hold: first.data.hold });
if (released.status !== 200) fail(released);

const second = await waiting;
if (second.status !== 200) fail(second);
const lost = await holdfast.renew(...lock, { hold: first.data.hold, ttl: '60s' });
if (lost.status !== 409) fail(lost);
const { code } = lost.data;

const ended = await holdfast.release(...lock, { hold: second.data.hold });
if (ended.status !== 200) fail(ended);

const lease = await holdfast.v1Acquire('reports', 'weekly', { instanceId: 'instance-1', leaseDuration: 60 });
if (lease.status !== 200) fail(lease);
const refused = await holdfast.v1Acquire('reports', 'weekly', { instanceId: 'instance-2', leaseDuration: 60 });
if (refused.status !== 423) fail(refused);
const { success } = refused.data;

console.log(JSON.stringify({
  owner, freeInMs, waiters, code, success,
  tokens: [first.data.token, second.data.token],
  extendedMs: renewed.data.expiresAt - first.data.expiresAt,
  held: [released.data.held, ended.data.held],
  expiry: lease.data.expiry,
}));
`;

/** Runs a script with Node, and gives what it printed. */
async function run(folder: string, ...command: readonly string[]): Promise<string> {
  try {
    return (await execute(process.execPath, command, { cwd: folder })).stdout;
  } catch (error) {
    // The compiler prints what is wrong to its standard output.
    const { stdout = '', stderr = '' } = error as { readonly stdout?: string; readonly stderr?: string };
    throw new Error(`${command[0]} failed:\n${stdout}${stderr}`, { cause: error });
  }
}

it(
  'a client generated from the document takes, waits for, renews and releases a lock',
  async () => {
    const { path, keys } = await keyFile({ ada: ['lock:reports'] });
    const { url } = await stage({ auth: createAuth({ apiKeys: path }) });
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-client-'));
    atTheEnd(() => rmSync(folder, { recursive: true }));
    symlinkSync(MODULES, join(folder, 'node_modules'));
    const write = (name: string, text: string): void => writeFileSync(join(folder, name), text);
    write('openapi.json', await (await fetch(`${url}/v2/openapi.json`)).text());
    write('package.json', JSON.stringify({ type: 'module' }));
    write('program.ts', PROGRAM);

    write('client.ts', await generateSource(join(folder, 'openapi.json')));
    const strict = ['--strict', '--noUncheckedIndexedAccess', '--module', 'nodenext', '--target', 'es2023'];
    await run(folder, COMPILER, ...strict, '--types', 'node', '--skipLibCheck', 'program.ts');
    const stdout = await run(folder, 'program.js', url, keys.ada);

    const said = JSON.parse(stdout) as {
      readonly tokens: readonly [number, number];
      readonly freeInMs: number;
      readonly extendedMs: number;
      readonly expiry: number;
    };
    expect(said).toMatchObject({
      owner: 'first',
      waiters: 1,
      code: 'lost',
      success: false,
      held: [true, true],
    });
    const [first, second] = said.tokens;
    expect(second).toBeGreaterThan(first);
    expect(first).toBeGreaterThan(2 ** 32);
    expect(said.freeInMs).toBeGreaterThan(0);
    expect(said.extendedMs).toBeGreaterThan(0);
    expect(said.expiry).toBeGreaterThan(1_600_000_000);
  },
  TIME_MS,
);
