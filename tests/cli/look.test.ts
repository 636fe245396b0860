import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { describe, expect, it } from 'vitest';
import { type Running, usePlace } from './holdfast.js';

const place = usePlace();

async function hold(key: string, owner: string): Promise<Running> {
  const running = place.start(['run', key, '--owner', owner, '--', 'sh', '-c', 'echo in; exec sleep 60']);
  await running.said(/in/);
  return running;
}

async function json(args: readonly string[], expected = 0) {
  const { status, stdout, stderr } = await place.run([...args, '--json']);
  expect({ status, stderr }).toEqual({ status: expected, stderr: '' });
  return JSON.parse(stdout);
}

describe('holdfast ls', () => {
  it('says so when nothing is held, and leaves stdout empty for scripts', async () => {
    expect(await place.run(['ls'])).toMatchObject({
      status: 0,
      stdout: '',
      stderr: 'No key is held or waited for.\n',
    });
    expect(await json(['ls'])).toEqual([]);
  });

  it('lists holders in aligned columns, in the order of the keys, without colour in a pipe', async () => {
    await Promise.all([hold('deploy:web', 'alice'), hold('backup', 'bob')]);
    const { stdout } = await place.run(['ls']);
    const lines = stdout.trimEnd().split('\n');
    expect(lines[0]).toMatch(/^KEY +HOLDER +PERMITS +TOKEN +HELD FOR +EXPIRES IN +WAITING$/);
    expect(lines[1]).toMatch(/^backup +bob +1 +\d+ +\S+ +\d+s +-$/);
    expect(lines[2]).toMatch(/^deploy:web +alice +1 +\d+ +\S+ +\d+s +-$/);
    expect(lines).toHaveLength(3);
    // Every line ends where the column of those who wait begins, and none of them waits.
    const at = (lines[0] ?? '').indexOf('WAITING');
    expect(lines.slice(1).map((line) => line.length)).toEqual([at + 1, at + 1]);
  });

  it('takes a prefix, a limit and where to go on', async () => {
    await Promise.all([hold('a:1', 'x'), hold('a:2', 'x'), hold('b:1', 'x')]);
    const keysOf = async (args: readonly string[]) =>
      (await json(args)).map(({ key }: { key: string }) => key);
    expect(await keysOf(['ls'])).toEqual(['a:1', 'a:2', 'b:1']);
    expect(await keysOf(['ls', 'a:'])).toEqual(['a:1', 'a:2']);
    expect(await keysOf(['ls', '--limit', '1'])).toEqual(['a:1']);
    expect(await keysOf(['ls', '--limit', '1', '--after', 'a:1'])).toEqual(['a:2']);
    expect(await keysOf(['ls', '--namespace', 'elsewhere'])).toEqual([]);
  });

  it('shows the keys around records of a newer format, names those, and exits 69', async () => {
    await Promise.all(['a', 'b', 'c', 'd'].map((key) => hold(key, 'x')));
    const database = new DatabaseSync(join(place.folder, 'locks.db'));
    database.exec('PRAGMA busy_timeout = 5000');
    const spoil = database.prepare(
      "UPDATE holdfast_records SET state = json_set(state, '$.version', 99) WHERE key = ?",
    );
    for (const key of ['default/a', 'default/c']) spoil.run(key);
    database.close();
    const { status, stdout, stderr } = await place.run(['ls']);
    expect(stdout).toMatch(/^KEY.*\nb +x .*\nd +x .*\n$/);
    expect(stderr).toMatch(
      /^holdfast: The record of "default\/a" has format 99.*\nholdfast: .*"default\/c".*\n$/,
    );
    expect(status).toBe(69);
    expect((await place.run(['ls', '--limit', '1', '--after', 'a'])).status).toBe(0);
    const watching = place.start(['watch', '--every', '50ms']);
    await watching.said(/b {2}held by x[\s\S]*d {2}held by x/);
    watching.kill('SIGINT');
    await watching.ended;
  });

  it('ends quietly when its reader has seen enough', async () => {
    await Promise.all(['a', 'b', 'c'].map((key) => hold(key, 'x')));
    const running = place.start(['ls']);
    running.child.stdout?.destroy();
    const { status, stderr } = await running.ended;
    expect(status).toBe(0);
    expect(stderr).toBe('');
  });
});

describe('holdfast inspect', () => {
  it('says that a key is free, and exits 1', async () => {
    expect(await place.run(['inspect', 'job'])).toMatchObject({ status: 1, stdout: '"job" is free.\n' });
    expect(await json(['inspect', 'job'], 1)).toEqual({ key: 'job', now: null, holders: [], waiters: [] });
  });

  it('shows who holds it and who waits for it, and no hold id', async () => {
    await hold('job', 'alice');
    const waiting = place.start(['run', 'job', '--owner', 'bob', '--wait', '20s', '--', 'true']);
    await place.waiting('job', 1);
    const info = await json(['inspect', 'job']);
    expect(Object.keys(info)).toEqual(['key', 'now', 'holders', 'waiters']);
    expect(Object.keys(info.holders[0]).sort()).toEqual([
      'acquiredAt',
      'capacity',
      'expiresAt',
      'metadata',
      'owner',
      'permits',
      'resting',
      'token',
    ]);
    expect(Object.keys(info.waiters[0]).sort()).toEqual(['capacity', 'owner', 'permits', 'since']);
    expect(info.holders[0]).toMatchObject({ owner: 'alice', permits: 1, capacity: 1, resting: false });
    expect(info.waiters[0]).toMatchObject({ owner: 'bob' });
    const { stdout } = await place.run(['inspect', 'job']);
    expect(stdout).toMatch(
      /^job\n {2}held by alice since .+ until .+\n {4}token \d+, permits 1\n {4}metadata {"command":"sh"}\n {2}1\. waiting: bob, for .+\n$/,
    );
    waiting.kill('SIGTERM');
    await waiting.ended;
  });

  it('with --quiet only exits: 0 for a key that is held, 1 for a free one', async () => {
    await hold('job', 'alice');
    const silent = { stdout: '', stderr: '' };
    expect(await place.run(['inspect', 'job', '--quiet'])).toMatchObject({ status: 0, ...silent });
    expect(await place.run(['inspect', 'other', '-q'])).toMatchObject({ status: 1, ...silent });
  });

  it('F17: shows no escape sequence that somebody put into his name', async () => {
    const running = place.start([
      'run',
      'job',
      '--owner',
      'a\u001b[2Jb',
      '--',
      'sh',
      '-c',
      'echo in; exec sleep 60',
    ]);
    const started = await Promise.race([running.said(/in/), running.ended]);
    if ('status' in started) expect(started.status).toBe(64);
    for (const args of [['ls'], ['inspect', 'job']]) {
      expect((await place.run(args)).stdout).not.toContain('\u001b');
    }
  });

  it('F17: shows none from metadata either, also as JSON, which still says what it is', async () => {
    // U+009B begins an escape sequence as well, and JSON need not escape it.
    const note = '\u009b31mred \u007f\u202e \u{e0001}';
    const command = ['sh', '-c', 'echo in; exec sleep 60'];
    await place.start(['run', 'job', '--metadata', `note=${note}`, '--', ...command]).said(/in/);
    for (const args of [
      ['inspect', 'job'],
      ['inspect', 'job', '--json'],
      ['ls', '--json'],
    ]) {
      const { stdout } = await place.run(args);
      expect(stdout).toContain('31mred');
      expect(stdout).not.toMatch(/[\u007f-\u009f]|\p{Cf}/u);
    }
    expect((await json(['inspect', 'job'])).holders).toMatchObject([{ metadata: { note } }]);
  });
});

describe('holdfast evict', () => {
  it('wants --yes where it cannot ask', async () => {
    await hold('job', 'alice');
    expect(await place.run(['evict', 'job'])).toMatchObject({
      status: 64,
      stderr: 'holdfast: evict asks for confirmation; without a terminal, give --yes\n',
    });
    expect((await json(['inspect', 'job'])).holders).toHaveLength(1);
  });

  it('ends the holder, and finds nobody the second time', async () => {
    const holder = await hold('job', 'alice');
    expect(await json(['evict', 'job', '-y'])).toEqual({ key: 'job', evicted: 1 });
    expect((await holder.ended).status).toBe(76);
    expect(await place.run(['evict', 'job', '--yes'])).toMatchObject({
      status: 0,
      stdout: 'There is no holder of "job".\n',
    });
  });
});

describe('holdfast evict --token and --reason', () => {
  it('ends one holder of a semaphore, tells it why, and leaves the other', async () => {
    const work = ['--capacity', '2', '--ttl', '30m', '--', 'sh', '-c', 'echo in; exec sleep 60'];
    const holders = ['alice', 'bob'].map((owner) => place.start(['run', 'job', '--owner', owner, ...work]));
    await Promise.all(holders.map((holder) => holder.said(/in/)));
    const seen = (await json(['inspect', 'job'])).holders as { owner: string; token: number }[];
    const token = seen.find(({ owner }) => owner === 'bob')?.token ?? 0;
    const evict = ['evict', 'job', '--yes', '--token', String(token), '--reason', 'retired'];
    expect(await json(evict)).toEqual({ key: 'job', evicted: 1 });
    const { status, stderr } = await (holders[1] as (typeof holders)[number]).ended;
    expect(status).toBe(76);
    expect(stderr).toContain('retired');
    expect((await place.run(evict)).stdout).toBe(`There is no holder of "job" with token ${token}.\n`);
    const left = (await json(['inspect', 'job'])).holders as { owner: string }[];
    expect(left.map(({ owner }) => owner)).toEqual(['alice']);
    expect(await place.run(['evict', 'job', '--yes', '--token', 'x'])).toMatchObject({ status: 64 });
    expect(await place.run(['evict', 'job', '--yes', '--reason', ''])).toMatchObject({ status: 64 });
  });
});

describe('holdfast watch', () => {
  it('prints a line a change, and ends with status 0 when interrupted', async () => {
    const watching = place.start(['watch', '--every', '50ms']);
    const holder = await hold('job', 'alice');
    await watching.said(/job {2}held by alice \(token \d+\)\n/);
    holder.kill('SIGTERM');
    await watching.said(/job {2}is free\n/);
    watching.kill('SIGINT');
    const { status, stdout, stderr } = await watching.ended;
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout.trimEnd().split('\n')).toHaveLength(2);
  });

  it('names those who wait, and so does ls', async () => {
    const watching = place.start(['watch', 'job', '--every', '50ms']);
    await hold('job', 'alice');
    await watching.said(/job {2}held by alice/);
    place.start(['run', 'job', '--owner', 'bob', '--wait', '60s', '--', 'true']);
    await watching.said(/job {2}held by alice \(token \d+\), 1 waiting: bob\n/);
    expect((await place.run(['ls'])).stdout).toMatch(/^job +alice .+ 1: bob$/m);
    watching.kill('SIGINT');
    await watching.ended;
  });

  it('prints a JSON line a change', async () => {
    const watching = place.start(['watch', 'job', '--every', '50ms', '--json']);
    const holder = await hold('job', 'alice');
    await watching.said(/appeared/);
    holder.kill('SIGTERM');
    await watching.said(/gone/);
    watching.kill('SIGTERM');
    const { status, stdout } = await watching.ended;
    expect(status).toBe(0);
    const changes = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(changes[0]).toMatchObject({ kind: 'appeared', key: 'job', holders: [{ owner: 'alice' }] });
    expect(changes.at(-1)).toMatchObject({ kind: 'gone', key: 'job' });
  });
});

describe('holdfast doctor', () => {
  it('says whether the store is reachable, whose clock it is, that push works and what is promised', async () => {
    const { status, stdout } = await place.run(['doctor']);
    expect(status).toBe(0);
    expect(stdout).toContain(place.store);
    expect(stdout).toMatch(/^ {2}good {5}Reachable: answers in .+\.$/m);
    expect(stdout).toMatch(
      /^ {2}good {5}Clock: this machine's clock decides; it is .+ this machine's wall clock\.$/m,
    );
    expect(stdout).toMatch(/^ {2}good {5}Wake-ups: work; a waiter has the lock .+ after its release\.$/m);
    expect(stdout).toMatch(/^ {2}good {5}Shared: by all processes of this machine\.$/m);
  });

  it('does so in JSON, and leaves nothing held', async () => {
    const report = await json(['doctor']);
    expect(report).toMatchObject({ store: place.store, ok: true });
    expect(report.checks.map(({ name }: { name: string }) => name)).toEqual(
      expect.arrayContaining(['reachable', 'clock', 'push', 'shared', 'durable']),
    );
    expect(await json(['ls', '--namespace', 'holdfast-doctor'])).toEqual([]);
  });

  it('warns of a store that only one process can use', async () => {
    const { status, stdout } = await place.run(['doctor', '--store', 'memory:']);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^ {2}warning {2}Shared: only within one process\.$/m);
  });
});
