#!/usr/bin/env node
/**
 * What one lock service needs: memory and processor while clients wait, hold and take turns, on each store. Prints a table in
 * Markdown, or puts it into a page with `--page FILE`. `--quick` shows that it works; its figures mean nothing.
 */
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createLocks } from 'holdfast';
import { httpStore } from 'holdfast/http';
import { cpuUsOf } from './process-cpu.js';
import { Servers } from './servers.js';
import { number, percent } from './words.js';

const { values } = parseArgs({ options: { quick: { type: 'boolean' }, page: { type: 'string' } } });
const SIZES = values.quick
  ? { waiters: 20, many: 50, leases: 20, loops: 8, measureMs: 500 }
  : { waiters: 1_000, many: 5_000, leases: 10_000, loops: 64, measureMs: 10_000 };
const BINARY = fileURLToPath(new URL('../packages/cli/bin/holdfast.js', import.meta.url));
const [BEGIN, END] = ['<!-- measured: begin -->', '<!-- measured: end -->'];
const GROUP = 500;
const LIMITS = { principalLimits: { requestsPerSecond: 1e9, requestBurst: 1e9 } };

const pause = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** @param {Agent} agent @param {string} url @param {object} body @returns {Promise<{ hold: string }>} */
function post(agent, url, body) {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' };
    const sent = request(url, { agent, method: 'POST', headers }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      answer.on('error', reject).on('end', () => {
        if (answer.statusCode === 200) resolve(JSON.parse(text));
        else reject(new Error(`${url} answered ${answer.statusCode}: ${text}`));
      });
    });
    sent.on('error', reject).end(JSON.stringify(body));
  });
}

/** Megabytes that are in memory. @param {number} pid */
const memoryOf = (pid) =>
  Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024;

/** The share of one core that this process used meanwhile. @param {number} pid @param {() => Promise<unknown>} work */
async function shareDuring(pid, work) {
  const [beganMs, before] = [performance.now(), cpuUsOf(pid) ?? 0];
  await work();
  return ((cpuUsOf(pid) ?? 0) - before) / 1_000 / (performance.now() - beganMs);
}

/** @param {string} store @param {string} folder */
async function serve(store, folder) {
  const config = join(folder, 'service.json');
  writeFileSync(config, JSON.stringify(LIMITS));
  const args = ['serve', '--port', '0', '--store', store, '--log-level', 'silent', '--config', config];
  const child = spawn(process.execPath, [BINARY, ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  let said = '';
  const url = await /** @type {Promise<string>} */ (
    new Promise((resolve, reject) => {
      child.once('exit', (status) => reject(new Error(`The service ended with ${status}: ${said}`)));
      child.stderr.on('data', (chunk) => {
        said += chunk;
        const [, found] = /holdfast: (http:\S+)/.exec(said) ?? [];
        if (found) resolve(found);
      });
    })
  );
  return { url, pid: child.pid ?? 0, stop: () => child.kill('SIGTERM') && ended };
}

/** @param {string} lock @param {number} count */
async function waitingOn(lock, count) {
  for (let tries = 0; tries < 3_000; tries++) {
    const { waiting } = /** @type {{ waiting: number }} */ (await (await fetch(lock)).json());
    if (waiting >= count) return;
    await pause(20);
  }
  throw new Error(`There were never ${count} waiters.`);
}

/** Waiters on one key: what they cost while they wait, and how long until each had its turn. @param {string} url @param {number} pid */
async function measureWaiting(url, pid) {
  const agent = new Agent({ keepAlive: true });
  const lock = `${url}/v2/locks/sizing/queue`;
  const { hold } = await post(agent, `${lock}/acquire`, { ttl: '10m' });
  /** @type {Promise<unknown>[]} */
  const clients = [];
  const take = async () => {
    const granted = await post(agent, `${lock}/acquire`, { ttl: '10m', wait: '10m' });
    await post(agent, `${lock}/release`, { hold: granted.hold });
  };
  /** Connections that have not sent a request yet are limited, so clients come in groups. @param {number} count */
  const add = async (count) => {
    while (clients.length < count) {
      for (let at = 0; at < GROUP && clients.length < count; at++) clients.push(take());
      await waitingOn(lock, clients.length);
    }
    await pause(SIZES.measureMs / 5);
    return memoryOf(pid);
  };
  const some = await add(SIZES.waiters);
  const many = await add(SIZES.many);
  const share = await shareDuring(pid, () => pause(SIZES.measureMs));
  const beganMs = performance.now();
  await post(agent, `${lock}/release`, { hold });
  await Promise.all(clients);
  const seconds = (performance.now() - beganMs) / 1_000;
  agent.destroy();
  return { some, many, share, seconds };
}

/** Leases of the library that renew themselves. @param {string} url @param {number} pid */
async function measureHolding(url, pid) {
  const locks = createLocks(httpStore({ url }));
  const keys = Array.from({ length: SIZES.leases }, (_, index) => `sizing/${index}`);
  // Renewals fall due evenly when the leases began evenly.
  for (let at = 0; at < keys.length; at += 100) {
    await Promise.all(keys.slice(at, at + 100).map((key) => locks.acquire(key, { ttl: '30s' })));
    await pause((SIZES.measureMs * 100) / keys.length);
  }
  const share = await shareDuring(pid, () => pause(SIZES.measureMs));
  const memory = memoryOf(pid);
  await locks.close({ drain: 0 });
  return { share, memory };
}

/** Acquire and release, one request each. @param {string} url @param {number} pid */
async function measureTurns(url, pid) {
  const agent = new Agent({ keepAlive: true, noDelay: true });
  let [cycles, isOver] = [0, false];
  const loop = async (/** @type {number} */ index) => {
    while (!isOver) {
      const lock = `${url}/v2/locks/sizing/loop-${index}`;
      const { hold } = await post(agent, `${lock}/acquire`, { ttl: '30s' });
      await post(agent, `${lock}/release`, { hold });
      cycles += 1;
    }
  };
  const loops = Array.from({ length: SIZES.loops }, (_, index) => loop(index));
  const beganMs = performance.now();
  const share = await shareDuring(pid, () => pause(SIZES.measureMs));
  isOver = true;
  await Promise.all(loops);
  agent.destroy();
  return { perSecond: (cycles / (performance.now() - beganMs)) * 1_000, share, memory: memoryOf(pid) };
}

/** @param {string} store @returns {Promise<string[]>} */
async function measure(store) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-sizing-'));
  const service = await serve(store.replace('FOLDER', folder), folder);
  try {
    const started = memoryOf(service.pid);
    const waiting = await measureWaiting(service.url, service.pid);
    const holding = await measureHolding(service.url, service.pid);
    const turns = await measureTurns(service.url, service.pid);
    return [
      ...[started, waiting.some, waiting.many].map(megabytes),
      ...[percent(waiting.share), `${waiting.seconds.toFixed(1)} s`],
      ...[megabytes(holding.memory), percent(holding.share)],
      ...[number(turns.perSecond), percent(turns.share), megabytes(turns.memory)],
    ];
  } finally {
    await service.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

const megabytes = (/** @type {number} */ value) => `${value.toFixed(0)} MB`;

const LABELS = [
  'memory after the start',
  `memory with ${number(SIZES.waiters)} clients that wait on one key`,
  `memory with ${number(SIZES.many)} of them`,
  'processor while they wait, of one core',
  'time until all of them had the lock, one after the other',
  `memory with ${number(SIZES.leases)} leases of the library, ttl 30 s`,
  'processor for their renewals',
  `acquires and releases per second by ${SIZES.loops} clients, each on its own key`,
  'processor meanwhile',
  'memory meanwhile',
];

/** A heading, and the line under it; then one row for each figure. @param {Record<string, string[]>} columns */
function tableOf(columns) {
  const rows = LABELS.map((label, at) => [label, ...Object.values(columns).map((cells) => cells[at])]);
  const rule = ['---', ...Object.keys(columns).map(() => '---:')];
  return [['', ...Object.keys(columns)], rule, ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

const loadBefore = loadavg()[0]?.toFixed(1);
const servers = new Servers({ measured: !values.quick });
try {
  const postgres = await servers.urlFor('postgres');
  execFileSync(process.execPath, [BINARY, 'migrate', '--store', postgres]);
  const stores = {
    memory: 'memory:',
    SQLite: 'sqlite:FOLDER/locks.db',
    Redis: await servers.urlFor('redis'),
    PostgreSQL: postgres,
  };
  /** @type {Record<string, string[]>} */
  const columns = {};
  for (const [name, store] of Object.entries(stores)) columns[name] = await measure(store);
  const table = tableOf(columns);
  if (values.page === undefined) console.log(table);
  else {
    const page = readFileSync(values.page, 'utf8');
    const [before = '', rest = ''] = page.split(BEGIN);
    const [, after = ''] = rest.split(END);
    const { redis, postgres: version } = await servers.versions();
    const where = `Node ${process.versions.node} on ${cpus().length} cores (${cpus()[0]?.model}), Redis ${redis}, PostgreSQL ${version}; load ${loadBefore} before the run and ${loadavg()[0]?.toFixed(1)} after it; the clients and the store on the same machine, the log off.`;
    writeFileSync(values.page, `${before}${BEGIN}\n${where}\n\n${table}\n${END}${after}`);
  }
} finally {
  await servers.stop();
}
