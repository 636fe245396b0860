/** Runs one workload of one contender in a process of its own and sends the answer to its parent. */
import { setTimeout as sleep } from 'node:timers/promises';
import { countTimers } from './live-timers.js';
import { handover } from './workloads/handover.js';
import { held } from './workloads/held.js';
import { idle } from './workloads/idle.js';
import { killed } from './workloads/killed.js';
import {
  across,
  contended,
  fresh,
  freshInFlight,
  granted,
  inFlight,
  refused,
  sequential,
} from './workloads/throughput.js';

const workloads = {
  sequential,
  'in-flight': inFlight,
  fresh,
  'fresh-in-flight': freshInFlight,
  'many-keys': inFlight,
  granted,
  refused,
  contended,
  across,
  handover,
  held,
  idle,
  killed,
};

/** @type {import('./types.d.ts').Task} */
const task = JSON.parse(process.argv[2] ?? '{}');
if (task.workload === 'held') countTimers();
/** @type {{ contender: import('./types.d.ts').Contender }} */
const { contender } = await import(`./contenders/${task.contender}.js`);
const ttlMs = task.workload === 'killed' ? task.sizes.killedTtlMs : task.sizes.ttlMs;
const session = await contender.open({ folder: task.folder, url: task.url, ttlMs });
await sleep(Math.max(0, task.startAt - Date.now()));
const answer = await workloads[task.workload](session, task);
await session.close?.();
if (process.send) {
  process.send(answer, () => process.exit(0));
} else {
  console.log(answer);
  process.exit(0);
}
