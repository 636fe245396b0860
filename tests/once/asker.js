/**
 * One process of several that want the same value. At each line on its standard input, many callers ask for the value of
 * that key at once. It says when a creation began, and when the last of its callers was answered. The value is a file.
 */
import { appendFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks, openStore } from 'holdfast';
import { machineMs } from '../faults/turns.js';

const [url = '', folder = '', callers = '', workMs = ''] = process.argv.slice(2);
const locks = createLocks(await openStore(url));

/** @param {string} key */
async function get(key) {
  try {
    return await readFile(join(folder, `${key}.value`), 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** @param {string} key */
async function create(key) {
  console.log(`began ${key} ${machineMs()}`);
  appendFileSync(join(folder, `${key}.creations`), `${process.pid}\n`);
  await sleep(Number(workMs));
  const value = `${key} by ${process.pid}`;
  await writeFile(join(folder, `${key}.value`), value);
  return value;
}

/** @param {string} key */
async function ask(key) {
  const asked = Array.from({ length: Number(callers) }, () =>
    locks.getOrCreate(key, { get: () => get(key), create: () => create(key), wait: '1m' }),
  );
  const values = await Promise.all(asked);
  console.log(`answered ${key} ${machineMs()} ${JSON.stringify([...new Set(values)])}`);
}

console.log('ready');
for await (const key of createInterface({ input: process.stdin })) await ask(key);
await locks.close();
