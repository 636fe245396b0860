/** What `run` can hold, and what it says about itself. */
import { hostname, userInfo } from 'node:os';
import { describe, expect, it } from 'vitest';
import { type Running, usePlace } from './holdfast.js';

const place = usePlace();
const STAY = ['--', 'sh', '-c', 'echo in; exec sleep 60'];

async function hold(...args: readonly string[]): Promise<Running> {
  const running = place.start(['run', ...args, ...STAY]);
  await running.said(/in/);
  return running;
}

async function inspected(key: string) {
  return JSON.parse((await place.run(['inspect', key, '--json'])).stdout);
}

describe('holdfast run with several keys', () => {
  it('holds all of them, and gives the command their keys and tokens in lines', async () => {
    const script = 'echo "$HOLDFAST_LOCK"; echo "$HOLDFAST_TOKEN"';
    const { status, stdout } = await place.run(['run', 'b', '--key', 'a', '--', 'sh', '-c', script]);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^a\nb\n\d+\n\d+\n$/);
    await hold('a', '--key', 'b', '--owner', 'alice');
    for (const key of ['a', 'b']) {
      expect((await inspected(key)).holders).toMatchObject([{ owner: 'alice' }]);
      const refused = await place.run(['run', key, '--wait', '0', '--', 'true']);
      expect(refused).toMatchObject({ status: 75 });
    }
  });

  it('holds none when one of them is not acquired in time, and says which', async () => {
    await hold('b', '--owner', 'alice');
    const refused = await place.run(['run', '--key', 'a', '--key', 'b', '--wait', '100ms', '--', 'true']);
    expect(refused.status).toBe(75);
    expect(refused.stderr).toMatch(/^holdfast: could not acquire "b" within 100ms: held by alice/);
    expect((await inspected('a')).holders).toEqual([]);
  });

  it('ends the command when one of them is lost, names it, and releases the others', async () => {
    const running = await hold('a', '--key', 'b');
    expect((await place.run(['evict', 'a', '--yes'])).status).toBe(0);
    const { status, stderr } = await running.ended;
    expect(status).toBe(76);
    expect(stderr).toMatch(/^holdfast: "a" was lost \(.*evicted.*\); the command was ended/);
    expect((await inspected('b')).holders).toEqual([]);
  });

  it('leaves no cool-down on any of them when the command cannot be started', async () => {
    const twice = ['run', 'a', '--key', 'b', '--wait', '0', '--min-hold', '1h', '--'];
    expect((await place.run([...twice, 'no-such-command'])).status).toBe(127);
    expect((await place.run([...twice, 'true'])).status).toBe(0);
    expect((await place.run([...twice, 'true'])).status).toBe(75);
  });
});

describe('holdfast run --shared', () => {
  it('shares the key with others that do, and with nobody else', async () => {
    await Promise.all([hold('doc', '--shared'), hold('doc', '--shared')]);
    expect((await inspected('doc')).holders).toHaveLength(2);
    expect((await place.run(['inspect', 'doc'])).stdout).toMatch(/permits shared$/m);
    expect((await place.run(['run', 'doc', '--wait', '0', '--', 'true'])).status).toBe(75);
    await hold('other');
    expect((await place.run(['run', 'other', '--shared', '--wait', '0', '--', 'true'])).status).toBe(75);
  });
});

describe('what a holder says about itself', () => {
  it('is its user, its machine, its process, and the program that it runs without its arguments', async () => {
    const running = await hold('job');
    const [holder] = (await inspected('job')).holders;
    expect(holder.owner).toBe(`${userInfo().username}@${hostname()}:${running.pid}`);
    expect(holder.metadata).toEqual({ command: 'sh' });
  });

  it('has the metadata that it was given', async () => {
    await hold('job', '--metadata', 'build=42', '--metadata', 'command=deploy web');
    expect((await inspected('job')).holders[0].metadata).toEqual({ command: 'deploy web', build: '42' });
  });
});

describe('--verbose and --quiet', () => {
  it('say on stderr what happens to the lock, or nothing but failures', async () => {
    await hold('taken', '--owner', 'alice');
    const { stderr, stdout } = await place.run(['run', 'job', '--verbose', '--', 'echo', 'done']);
    expect(stdout).toBe('done\n');
    expect(stderr).toMatch(
      /^holdfast: acquired "job" after .+, token \d+\n(?:holdfast: renewed .+\n)*holdfast: released "job", held for .+\n$/,
    );
    const waited = await place.run(['run', 'taken', '--wait', '300ms', '-v', '--json', '--', 'true']);
    const lines = waited.stderr
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines[0]).toEqual({ note: 'waiting for "taken", held by alice; place 1 in the queue' });
    expect(lines[1]).toMatchObject({ error: { status: 75 } });
    const memory = ['run', 'job', '--store', 'memory:'];
    expect((await place.run([...memory, '--', 'true'])).stderr).toContain('other processes can acquire it');
    expect(await place.run([...memory, '--quiet', '--', 'true'])).toMatchObject({ status: 0, stderr: '' });
    const failed = await place.run(['run', 'taken', '--quiet', '--wait', '0', '--', 'true']);
    expect(failed.stderr).toMatch(/^holdfast: could not acquire "taken"/);
  });
});
