import { describe, expect, it } from 'vitest';
import { isAlive, type Running, sleep, until, usePlace } from './holdfast.js';

const place = usePlace();
const HOLD = ['--ttl', '30s', '--', 'sh', '-c', 'echo $$; exec sleep 60'];

/** Only where the process table can be read is a dead holder noticed before its ttl. */
describe.runIf(process.platform === 'linux')('holdfast killed with kill -9', () => {
  it('frees nothing while its command lives on, and frees it as soon as that is gone too', async () => {
    const running = place.start(['run', 'job', ...HOLD]);
    const [command] = await running.said(/\d+/);
    const pid = Number(command);
    await sleep(500);
    running.kill('SIGKILL');
    await ended(running);
    const early = await place.run(['run', 'job', '--wait', '1500ms', '--', 'true']);
    expect(isAlive(pid)).toBe(true);
    expect(early.status).toBe(75);
    const began = Date.now();
    const next = place.run(['run', 'job', '--wait', '25s', '--', 'true']);
    process.kill(pid, 'SIGKILL');
    expect((await next).status).toBe(0);
    expect(Date.now() - began).toBeLessThan(10_000);
  });

  it('at the very moment when its command starts, frees nothing either', async () => {
    for (let attempt = 0; attempt < 5; attempt++) {
      const key = `job:${attempt}`;
      const running = place.start(['run', key, ...HOLD]);
      await running.said(/\d+/);
      running.kill('SIGKILL');
      await ended(running);
      expect((await place.run(['run', key, '--wait', '300ms', '--', 'true'])).status).toBe(75);
    }
  });

  it('together with its command, frees the lock long before the ttl', async () => {
    const running = place.start(['run', 'job', ...HOLD]);
    const [command] = await running.said(/\d+/);
    const waiting = place.start(['run', 'job', '--wait', '25s', '--', 'echo', 'next']);
    await place.waiting('job', 1);
    const began = Date.now();
    process.kill(running.pid, 'SIGKILL');
    process.kill(Number(command), 'SIGKILL');
    await waiting.said(/next/);
    expect(Date.now() - began).toBeLessThan(10_000);
    expect((await waiting.ended).status).toBe(0);
  });

  it('while it waits in the queue, delays nobody', async () => {
    const holder = place.start([
      'run',
      'job',
      '--',
      'sh',
      '-c',
      'echo in; while [ ! -e go ]; do sleep 0.05; done',
    ]);
    await holder.said(/in/);
    const first = place.start(['run', 'job', '--wait', '25s', '--', 'true']);
    await place.waiting('job', 1);
    const second = place.start(['run', 'job', '--wait', '25s', '--', 'echo', 'second']);
    await place.waiting('job', 2);
    first.kill('SIGKILL');
    await place.startOther('touch', ['go']).ended;
    await second.said(/second/);
    expect((await second.ended).status).toBe(0);
  });
});

/** Its output stays open, as its command has it too. */
async function ended({ pid }: Running): Promise<void> {
  await until(
    () => !isAlive(pid),
    () => 'the end of holdfast',
  );
}
