/** Runs one workload of one contender in a process of its own and sends the figures to its parent. */
import { setTimeout as sleep } from 'node:timers/promises';
import { countTimers } from './live-timers.js';
import { held } from './workloads/held.js';
import { idle } from './workloads/idle.js';
import { across, contended, inFlight, sequential } from './workloads/throughput.js';

const workloads = { sequential, 'in-flight': inFlight, contended, across, held, idle };

/** @type {import('./types.d.ts').Task} */
const task = JSON.parse(process.argv[2] ?? '{}');
if (task.workload === 'held') countTimers();
/** @type {{ contender: import('./types.d.ts').Contender }} */
const { contender } = await import(`./contenders/${task.contender}.js`);
const session = await contender.open({ folder: task.folder, ttlMs: task.sizes.ttlMs });
await sleep(Math.max(0, (task.startAt ?? 0) - Date.now()));
const figures = await workloads[task.workload](session, task.sizes);
await session.close?.();
if (process.send) {
  process.send(figures, () => process.exit(0));
} else {
  console.log(figures);
  process.exit(0);
}
