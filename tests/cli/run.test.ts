import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isAlive, SIGNAL_TELLER, usePlace } from './holdfast.js';

const place = usePlace();

describe('holdfast run', () => {
  it('exits with the status of the command and passes its input and output through', async () => {
    const running = place.start(['run', 'job', '--', 'sh', '-c', 'cat; echo oops >&2; exit 3']);
    running.child.stdin?.end('through and through');
    expect(await running.ended).toEqual({
      status: 3,
      signal: null,
      stdout: 'through and through',
      stderr: 'oops\n',
    });
  });

  it('gives the command the key and a token that rises', async () => {
    const say = ['--', 'sh', '-c', 'echo "$HOLDFAST_LOCK $HOLDFAST_TOKEN"'];
    const first = await place.run(['run', 'job:1', ...say]);
    const second = await place.run(['run', 'job:1', ...say]);
    const [, key, token] = /^(\S+) (\d+)\n$/.exec(first.stdout) ?? [];
    const [, , later] = /^(\S+) (\d+)\n$/.exec(second.stdout) ?? [];
    expect(key).toBe('job:1');
    expect(Number(token)).toBeGreaterThan(0);
    expect(Number(later)).toBeGreaterThan(Number(token));
  });

  it('exits with 128 + n when signal n ended the command', async () => {
    expect((await place.run(['run', 'job', '--', 'sh', '-c', 'kill -TERM $$'])).status).toBe(143);
    expect((await place.run(['run', 'job', '--', 'sh', '-c', 'kill -KILL $$'])).status).toBe(137);
  });

  it('exits like a shell when the command is missing or cannot be executed, and keeps no lock', async () => {
    writeFileSync(join(place.folder, 'data.txt'), 'data', { mode: 0o644 });
    const missing = await place.run(['run', 'job', '--', 'no-such-command']);
    expect(missing).toMatchObject({ status: 127, stderr: 'holdfast: no-such-command: command not found\n' });
    const data = await place.run(['run', 'job', '--', './data.txt']);
    expect(data).toMatchObject({
      status: 126,
      stderr: 'holdfast: ./data.txt: cannot be executed: permission denied\n',
    });
    expect((await place.run(['run', 'job', '--wait', '0', '--', 'true'])).status).toBe(0);
  });

  it('never runs two commands of one key at once', async () => {
    const critical = 'mkdir inside || exit 99; sleep 0.1; rmdir inside';
    const runs = Array.from({ length: 6 }, () =>
      place.run(['run', 'job', '--wait', '25s', '--', 'sh', '-c', critical]),
    );
    for (const ended of await Promise.all(runs)) expect(ended).toMatchObject({ status: 0, stderr: '' });
  });

  it('lets as many in as --capacity says, and no more', async () => {
    const hold = ['--capacity', '2', '--wait', '0', '--', 'sh', '-c', 'echo in; exec sleep 60'];
    const first = place.start(['run', 'pool', ...hold]);
    const second = place.start(['run', 'pool', ...hold]);
    await first.said(/in/);
    await second.said(/in/);
    expect((await place.run(['run', 'pool', ...hold])).status).toBe(75);
    const both = await place.run(['run', 'pool', '--permits', '2', ...hold]);
    expect(both.status).toBe(75);
    expect(both.stderr).toMatch(/held by .+; .+/);
    first.kill('SIGTERM');
    expect((await first.ended).status).toBe(143);
    expect((await place.run(['run', 'pool', '--capacity', '2', '--wait', '5s', '--', 'true'])).status).toBe(
      0,
    );
  });

  it('warns of a store in which a lock keeps nobody out', async () => {
    const ran = await place.run(['run', 'job', '--store', 'memory:', '--', 'true']);
    expect(ran.status).toBe(0);
    expect(ran.stderr).toMatch(
      /^holdfast: warning: a lock in memory: exists only in this process: other processes can acquire it, too\n$/,
    );
  });

  it('keeps the key for --min-hold, however soon the command ends', async () => {
    const once = ['run', 'hourly', '--wait', '0', '--min-hold', '1h', '--', 'true'];
    expect((await place.run(once)).status).toBe(0);
    const again = await place.run(once);
    expect(again.status).toBe(75);
    expect(again.stderr).toMatch(/held by .+, released, cooling down until .+ \(in 1h|59m/);
  });
});

describe('a command that was not started', () => {
  it('leaves no cool-down behind', async () => {
    const hourly = ['run', 'hourly', '--wait', '0', '--min-hold', '1h', '--'];
    expect(await place.run([...hourly, 'no-such-command'])).toMatchObject({
      status: 127,
      stderr: 'holdfast: no-such-command: command not found\n',
    });
    expect((await place.run([...hourly, 'true'])).status).toBe(0);
    expect((await place.run([...hourly, 'true'])).status).toBe(75);
  });

  it('leaves none on a semaphore either, and those of others stay', async () => {
    const hourly = ['run', 'hourly', '--capacity', '2', '--wait', '0', '--min-hold', '1h', '--'];
    expect((await place.run([...hourly, 'true'])).status).toBe(0);
    expect((await place.run([...hourly, 'no-such-command'])).status).toBe(127);
    expect((await place.run([...hourly, 'true'])).status).toBe(0);
    expect((await place.run([...hourly, 'true'])).status).toBe(75);
  });
});

describe('a lock that is not acquired in time', () => {
  it('exits 75 and says who holds it, since when and until when, in one line', async () => {
    const holder = place.start([
      'run',
      'job',
      '--owner',
      'alice',
      '--',
      'sh',
      '-c',
      'echo in; exec sleep 60',
    ]);
    await holder.said(/in/);
    const waited = await place.run(['run', 'job', '--wait', '300ms', '--', 'true']);
    expect(waited.status).toBe(75);
    expect(waited.stdout).toBe('');
    const time = '\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d';
    expect(waited.stderr).toMatch(
      new RegExp(
        `^holdfast: could not acquire "job" within 300ms: held by alice since ${time} \\(.+ ago\\) until ${time} \\(in \\d+s\\) unless renewed\\n$`,
      ),
    );
    const atOnce = await place.run(['run', 'job', '--wait', '0', '--', 'true']);
    expect(atOnce.status).toBe(75);
    expect(atOnce.stderr).toMatch(/^holdfast: could not acquire "job": held by alice since/);
  });

  it('is told in JSON where that was asked for', async () => {
    const holder = place.start([
      'run',
      'job',
      '--owner',
      'alice',
      '--',
      'sh',
      '-c',
      'echo in; exec sleep 60',
    ]);
    await holder.said(/in/);
    const waited = await place.run(['run', 'job', '--wait', '0', '--json', '--', 'true']);
    expect(waited.status).toBe(75);
    const { error } = JSON.parse(waited.stderr);
    expect(error).toMatchObject({ status: 75, code: 'acquire-timeout', key: 'job' });
    expect(error.holders).toMatchObject([{ owner: 'alice', permits: 1, capacity: 1 }]);
    expect(Date.parse(error.holders[0].acquiredAt)).toBeLessThan(Date.parse(error.holders[0].expiresAt));
  });
});

describe('signals', () => {
  it('are passed on to the command, each once', async () => {
    const running = place.start(['run', 'job', '--', process.execPath, '-e', SIGNAL_TELLER]);
    await running.said(/ready/);
    const names = ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGUSR1', 'SIGUSR2', 'SIGALRM'] as const;
    for (const name of names) {
      running.kill(name);
      await running.said(new RegExp(`got ${name}\n`));
    }
    running.child.stdin?.end();
    const { status, stdout } = await running.ended;
    expect(status).toBe(7);
    expect(stdout).toBe(`ready\n${names.map((name) => `got ${name}\n`).join('')}`);
  });

  it('end the waiting before there is a command, which then never runs and leaves the queue', async () => {
    const holder = place.start(['run', 'job', '--', 'sh', '-c', 'echo in; exec sleep 60']);
    await holder.said(/in/);
    const waiting = place.start(['run', 'job', '--wait', '1m', '--', 'touch', 'ran']);
    await place.waiting('job', 1);
    waiting.kill('SIGTERM');
    const ended = await waiting.ended;
    expect(ended).toMatchObject({
      status: 143,
      stderr: 'holdfast: SIGTERM while waiting for "job": stopped waiting\n',
    });
    await place.waiting('job', 0);
    expect((await place.run(['run', 'other', '--', 'test', '-e', 'ran'])).status).toBe(1);
  });

  it('F21: leave the lock free once the command has ended by them', async () => {
    const running = place.start(['run', 'job', '--', 'sh', '-c', 'echo $$; exec sleep 60']);
    const [command] = await running.said(/\d+/);
    running.kill('SIGTERM');
    expect((await running.ended).status).toBe(143);
    expect(isAlive(Number(command))).toBe(false);
    expect((await place.run(['run', 'job', '--wait', '0', '--', 'true'])).status).toBe(0);
  });
});
