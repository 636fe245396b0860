import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { describe, expect, it } from 'vitest';
import { isAlive, sleep, until, usePlace } from './holdfast.js';

const place = usePlace();

/** Nobody can write to the store of this place until the function returned is called. */
function blockStore(): () => void {
  const database = new DatabaseSync(join(place.folder, 'locks.db'));
  database.exec('PRAGMA busy_timeout = 5000; BEGIN IMMEDIATE');
  return () => {
    database.exec('ROLLBACK');
    database.close();
  };
}

/** Stops a process outside of a transaction: one that stands still in a transaction holds up everybody. */
async function stop(running: { kill(signal: NodeJS.Signals): void }): Promise<void> {
  const unblock = blockStore();
  running.kill('SIGSTOP');
  await sleep(50);
  unblock();
}

it('a command that has run for --max-hold gets TERM a grace before, however well its lease renews; exits 76', async () => {
  const script = 'trap "echo cleaned; exit 0" TERM; while :; do sleep 0.05; done';
  const limits = ['--max-hold', '6s', '--grace', '2s'];
  const { status, stdout, stderr } = await place.run(['run', 'job', ...limits, '--', 'sh', '-c', script]);
  expect(stderr).toMatch(/^holdfast: "job" reached its --max-hold; sending TERM to the command, KILL in /m);
  expect(stderr).toMatch(
    /^holdfast: "job" (reached its --max-hold|was lost .*); the command was ended \(status/m,
  );
  expect(stdout).toMatch(/^(cleaned\n)?$/);
  expect(status).toBe(76);
});

it.runIf(process.platform === 'linux')(
  'a shell that TERM ends takes along what it runs: nothing goes on after --max-hold',
  async () => {
    // Two commands: a shell does not replace itself by the first one.
    const script = 'sh -c "echo \\$\\$; sleep 60; echo late"; echo later';
    const limits = ['--max-hold', '6s', '--grace', '4s'];
    const running = place.start(['run', 'job', ...limits, '--', 'sh', '-c', script]);
    const [, inner] = await running.said(/(\d+)/);
    // Its output stays open while the inner shell or its `sleep` lives: it would end in a minute.
    const { status, stdout, stderr } = await running.ended;
    expect(status).toBe(76);
    expect(stderr).toMatch(/the command was ended \(status 143\)$/m);
    expect(stdout).toBe(`${inner}\n`);
    expect(isAlive(Number(inner))).toBe(false);
  },
);

describe('a lease that cannot be renewed', () => {
  it('gives the command TERM a grace before the deadline, so that it can clean up; exits 76', async () => {
    const script = 'trap "echo cleaned; exit 0" TERM; echo in; while :; do sleep 0.05; done';
    const running = place.start(['run', 'job', '--ttl', '3s', '--', 'sh', '-c', script]);
    await running.said(/in/);
    const unblock = blockStore();
    try {
      const { status, stdout, stderr } = await running.ended;
      expect(status).toBe(76);
      expect(stdout).toBe('in\ncleaned\n');
      expect(stderr).toMatch(
        /^holdfast: "job" could not be renewed.*; sending TERM to the command, KILL in \d+ms$/m,
      );
      expect(stderr).toMatch(/^holdfast: "job" could not be renewed.*; the command was ended \(status 0\)$/m);
    } finally {
      unblock();
    }
  });

  it('gives a command that ignores TERM, and all it started, KILL at the deadline', async () => {
    const script = 'trap "" TERM; sleep 60 & echo $$ $!; wait; while :; do sleep 0.05; done';
    const running = place.start(['run', 'job', '--ttl', '2s', '--', 'sh', '-c', script]);
    const [, shell, sleeper] = await running.said(/(\d+) (\d+)/);
    const began = Date.now();
    const unblock = blockStore();
    try {
      const { status, stderr } = await running.ended;
      expect(status).toBe(76);
      expect(stderr).toMatch(/the command was ended \(status 137\)$/m);
      // The last renewal may have been moments ago, and two seconds are two seconds.
      expect(Date.now() - began).toBeLessThan(10_000);
      expect(isAlive(Number(shell))).toBe(false);
      await until(
        () => !isAlive(Number(sleeper)),
        () => 'the end of what the command had started',
      );
    } finally {
      unblock();
    }
  });

  it('F7: leaves the command alone when the store comes back in time', async () => {
    const running = place.start([
      'run',
      'job',
      '--ttl',
      '6s',
      '--',
      'sh',
      '-c',
      'echo in; sleep 7; echo done',
    ]);
    await running.said(/in/);
    const unblock = blockStore();
    await sleep(2_500);
    unblock();
    expect(await running.ended).toMatchObject({ status: 0, stdout: 'in\ndone\n' });
  });

  it('F7: reports the status of the command though the release fails', async () => {
    const running = place.start([
      'run',
      'job',
      '--',
      'sh',
      '-c',
      'echo in; while [ ! -e go ]; do sleep 0.05; done; exit 4',
    ]);
    await running.said(/in/);
    const unblock = blockStore();
    try {
      await place.startOther('touch', ['go']).ended;
      const { status, stderr } = await running.ended;
      expect(status).toBe(4);
      expect(stderr).toMatch(/^holdfast: warning: "job" could not be released/m);
    } finally {
      unblock();
    }
  });
});

describe('a lease that is lost', () => {
  it('F1: exits 76 and kills the command after a pause that outlasted the lease', async () => {
    const running = place.start(['run', 'job', '--ttl', '1s', '--', 'sh', '-c', 'echo $$; exec sleep 60']);
    const [command] = await running.said(/\d+/);
    await stop(running);
    const next = await place.run(['run', 'job', '--wait', '20s', '--', 'true']);
    expect(next.status).toBe(0);
    expect(isAlive(Number(command))).toBe(true);
    running.kill('SIGCONT');
    const { status, stderr } = await running.ended;
    expect(status).toBe(76);
    expect(stderr).toMatch(/^holdfast: "job" was lost \(.+\); the command was ended \(status 137\)$/m);
    expect(isAlive(Number(command))).toBe(false);
  });

  it('P10: exits 76 though the command ended well, if it ended after the loss', async () => {
    const script = 'echo in; while [ ! -e go ]; do sleep 0.05; done; touch finished';
    const running = place.start(['run', 'job', '--ttl', '1s', '--', 'sh', '-c', script]);
    await running.said(/in/);
    await stop(running);
    expect((await place.run(['run', 'job', '--wait', '20s', '--', 'touch', 'go'])).status).toBe(0);
    await until(
      () => existsSync(join(place.folder, 'finished')),
      () => 'the command to finish',
    );
    await sleep(200);
    running.kill('SIGCONT');
    const { status, stderr } = await running.ended;
    expect(status).toBe(76);
    expect(stderr).toMatch(/"job" was lost/);
  });

  it('exits 76 and kills the command where /proc cannot be read, too', async () => {
    const blind = join(place.folder, 'no-proc.cjs');
    const hide = `if (String(path).startsWith('/proc')) throw Object.assign(new Error('no /proc'), { code: 'ENOENT' });`;
    const wrap = (name: string): string =>
      `const ${name} = fs.${name}; fs.${name} = (path, ...rest) => { ${hide} return ${name}(path, ...rest); };`;
    writeFileSync(
      blind,
      `const fs = require('node:fs'); ${wrap('readdirSync')} ${wrap('readFileSync')} require('node:module').syncBuiltinESMExports();`,
    );
    const script = 'trap "" TERM; echo $$; while :; do sleep 0.05; done';
    const running = place.start(
      ['run', 'job', '--max-hold', '4s', '--grace', '1s', '--', 'sh', '-c', script],
      // SQLite would need /proc, to know which processes live.
      { NODE_OPTIONS: `--require ${blind}`, HOLDFAST_STORE: 'memory:' },
    );
    const [command] = await running.said(/\d+/);
    expect((await running.ended).status).toBe(76);
    expect(isAlive(Number(command))).toBe(false);
  });

  it('exits 76 and kills the command when an operator evicts it', async () => {
    // Its first renewal comes after minutes: what ends it before is the wake-up.
    const running = place.start(['run', 'job', '--ttl', '30m', '--', 'sh', '-c', 'echo $$; exec sleep 60']);
    const [command] = await running.said(/\d+/);
    const evicted = await place.run(['evict', 'job', '--yes']);
    expect(evicted).toMatchObject({ status: 0, stdout: 'Evicted 1 holder of "job".\n' });
    const { status } = await running.ended;
    expect(status).toBe(76);
    expect(isAlive(Number(command))).toBe(false);
  });
});
