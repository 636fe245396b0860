// @ts-check
/**
 * A sandbox of Lambda: one invocation at a time, `TIMEOUT_MS EVENT` on a line of standard input, and frozen as soon as
 * the handler has settled. Whoever invokes it again thaws it first.
 */
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { handler } from '../../examples/patterns/lambda.js';

/** @param {string} line */
async function invoke(line) {
  const [timeout = '', ...event] = line.split(' ');
  const endMs = performance.now() + Number(timeout);
  const context = { getRemainingTimeInMillis: () => endMs - performance.now() };
  const settled = await handler(JSON.parse(event.join(' ')), context).then(
    (value) => ({ value }),
    (error) => ({ reason: error.reason ?? String(error) }),
  );
  writeSync(1, `${JSON.stringify({ ...settled, leftMs: context.getRemainingTimeInMillis() })}\n`);
  process.kill(process.pid, 'SIGSTOP');
}

for await (const line of createInterface({ input: process.stdin })) await invoke(line);
