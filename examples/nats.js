// @ts-check
/**
 * Three processes, as if on three machines, count to thirty in a file. Each step reads and writes in two steps, so that
 * without the lock some would be lost.
 *
 * NATS_URL=nats://localhost:4222 node examples/nats.js
 */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '@nats-io/transport-node';
import { createLocks } from 'holdfast';
import { natsStore } from 'holdfast/nats';

const URL = process.env.NATS_URL ?? 'nats://localhost:4222';
const PROCESSES = 3;
const STEPS = 10;

/** @param {string} file */
async function work(file) {
  const connection = await connect({ servers: URL, maxReconnectAttempts: -1 });
  const locks = createLocks(natsStore(connection));
  for (let step = 0; step < STEPS; step++) {
    await locks.withLock(file, async (lease) => {
      const count = Number(await readFile(file, 'utf8'));
      lease.assertHeld();
      await writeFile(file, String(count + 1));
    });
  }
  await locks.close();
  await connection.close();
}

async function main() {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-example-'));
  const file = join(folder, 'counter');
  await writeFile(file, '0');
  const workers = Array.from({ length: PROCESSES }, () => fork(import.meta.filename, ['worker', file]));
  const exits = await Promise.all(workers.map((worker) => once(worker, 'exit')));
  assert.ok(
    exits.every(([code]) => code === 0),
    'every process ended well',
  );
  const count = Number(await readFile(file, 'utf8'));
  await rm(folder, { recursive: true });
  console.log(`${PROCESSES} processes counted to ${count}`);
  assert.equal(count, PROCESSES * STEPS, 'no step was lost');
}

const [, , role, file] = process.argv;
await (role === 'worker' && file ? work(file) : main());
