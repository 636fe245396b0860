import { describe, expect, it } from 'vitest';
import { isAlive, until, usePlace } from './holdfast.js';

const place = usePlace();

const lead = (owner: string, script: string, ...options: string[]) =>
  place.start(['lead', 'chief', '--owner', owner, ...options, '--', 'sh', '-c', script]);
const STAY = 'echo "leads $HOLDFAST_LOCK $HOLDFAST_TOKEN $$"; exec sleep 60';

async function token(running: ReturnType<typeof lead>): Promise<number> {
  const [, found] = await running.said(/leads chief (\d+) \d+/);
  return Number(found);
}

describe('holdfast lead', () => {
  it('runs the command in one process at a time, and in the next one when the first is stopped', async () => {
    const first = lead('a', STAY);
    const before = await token(first);
    const second = lead('b', STAY);
    await place.waiting('chief', 1);
    first.kill('SIGTERM');
    expect((await first.ended).status).toBe(143);
    expect(await token(second)).toBeGreaterThan(before);
    second.kill('SIGTERM');
    expect(await second.ended).toMatchObject({ status: 143, stderr: '' });
  });

  it('exits with the status of a command that ends by itself, and has resigned', async () => {
    expect(await lead('a', 'exit 3').ended).toMatchObject({ status: 3, stderr: '' });
    expect((await place.run(['leader', 'chief'])).status).toBe(1);
    const missing = await place.run(['lead', 'chief', '--', 'no-such-command']);
    expect(missing).toMatchObject({ status: 127, stderr: 'holdfast: no-such-command: command not found\n' });
  });

  it('starts it again with --restart, in another term, until it is stopped', async () => {
    const running = lead('a', 'echo "term $HOLDFAST_TOKEN"; exit 3', '--restart');
    const [, first, second] = await running.said(/term (\d+)\nterm (\d+)\n/);
    expect(Number(second)).toBeGreaterThan(Number(first));
    running.kill('SIGTERM');
    const { stderr } = await running.ended;
    expect(stderr).toMatch(/^holdfast: the command ended \(status 3\); resigned, takes part again in 1s$/m);
  });

  it('does not start it again with --restart once it was told to end', async () => {
    const running = lead('a', 'trap "exit 5" TERM; echo in; while :; do sleep 0.05; done', '--restart');
    await running.said(/in/);
    running.kill('SIGTERM');
    expect((await running.ended).status).toBe(5);
  });

  it('does not start it again with --restart when a HUP that it passed on ended it', async () => {
    const running = lead('a', 'echo in; exec sleep 60', '--restart');
    await running.said(/in/);
    running.kill('SIGHUP');
    expect(await running.ended).toMatchObject({ status: 129, stdout: 'in\n', stderr: '' });
  });

  it('starts it again after a HUP that was for the command, also when its lead is lost', async () => {
    const script = 'trap "echo reloaded" HUP; echo "term $HOLDFAST_TOKEN"; while :; do sleep 0.05; done';
    const running = lead('a', script);
    await running.said(/term \d+/);
    running.kill('SIGHUP');
    await running.said(/reloaded/);
    expect((await place.run(['evict', 'chief', '--yes'])).status).toBe(0);
    await running.said(/term \d+\nreloaded\nterm \d+/);
    running.kill('SIGTERM');
    expect((await running.ended).status).toBe(143);
    const ending = lead(
      'b',
      'trap "exit 3" HUP; echo "term $HOLDFAST_TOKEN"; while :; do sleep 0.05; done',
      '--restart',
    );
    await ending.said(/term \d+/);
    ending.kill('SIGHUP');
    await ending.said(/term \d+\nterm \d+/);
    ending.kill('SIGTERM');
    expect((await ending.ended).status).toBe(143);
  });

  it('ends the command when its lead is lost, and starts it again when it leads again', async () => {
    const running = lead('a', STAY);
    const [, before, command] = await running.said(/leads chief (\d+) (\d+)/);
    expect((await place.run(['evict', 'chief', '--yes'])).status).toBe(0);
    const [, after] = await running.said(/leads chief \d+ \d+\nleads chief (\d+) \d+/);
    expect(Number(after)).toBeGreaterThan(Number(before));
    await until(
      () => !isAlive(Number(command)),
      () => 'the end of the first command',
    );
    running.kill('SIGTERM');
    const { status, stderr } = await running.ended;
    expect(status).toBe(143);
    expect(stderr).toMatch(/^holdfast: "chief" was lost .+; waiting to lead again$/m);
  });

  it('stops waiting when it gets a signal', async () => {
    const first = lead('a', STAY);
    await token(first);
    const second = lead('b', STAY);
    await place.waiting('chief', 1);
    second.kill('SIGINT');
    expect(await second.ended).toMatchObject({
      status: 130,
      stdout: '',
      stderr: 'holdfast: SIGINT while waiting for "chief": stopped waiting\n',
    });
  });
});

describe('holdfast leader', () => {
  it('says who leads, and exits 1 when nobody does', async () => {
    const nobody = await place.run(['leader', 'chief']);
    expect(nobody).toMatchObject({ status: 1, stdout: '"chief" has no leader.\n', stderr: '' });
    const json = await place.run(['leader', 'chief', '--json']);
    expect(json.status).toBe(1);
    expect(JSON.parse(json.stdout)).toEqual({ key: 'chief', leader: null });
    const running = lead('web-1', STAY);
    const term = await token(running);
    const told = await place.run(['leader', 'chief']);
    expect(told.status).toBe(0);
    expect(told.stdout).toMatch(
      new RegExp(
        `^web-1 leads since \\d{4}-\\d\\d-\\d\\d [\\d:]+, token ${term}\n  metadata {"command":"sh"}\n$`,
      ),
    );
    const { leader } = JSON.parse((await place.run(['leader', 'chief', '--json'])).stdout);
    expect(leader).toMatchObject({ owner: 'web-1', metadata: { command: 'sh' }, token: term });
    expect(Date.parse(leader.since)).toBeGreaterThan(0);
  });
});

describe('holdfast run --tick', () => {
  it('runs the command once, however many start it, and the others succeed in silence', async () => {
    const all = await Promise.all(
      [1, 2, 3].map(() => place.run(['run', 'nightly', '--tick', '144h', '--', 'echo', 'ran'])),
    );
    expect(all.map(({ status, stderr }) => [status, stderr])).toEqual(all.map(() => [0, '']));
    expect(all.map(({ stdout }) => stdout).sort()).toEqual(['', '', 'ran\n']);
  });

  it('says so in JSON where that was asked for, and gives the tick to nobody when its command failed', async () => {
    const once = ['run', 'nightly', '--tick', '144h', '--json', '--'];
    expect((await place.run([...once, 'sh', '-c', 'exit 3'])).status).toBe(3);
    const again = await place.run([...once, 'echo', 'ran']);
    expect(again).toMatchObject({ status: 0, stdout: '' });
    expect(JSON.parse(again.stderr)).toEqual({ warning: '"nightly" was run for this tick already' });
  });

  it('gives the tick to nobody else when its process is killed, though the lock is free again', async () => {
    const tick = ['run', 'nightly', '--tick', '144h', '--ttl', '4s', '--'];
    const killed = place.start([...tick, 'sh', '-c', 'echo $$; exec sleep 60']);
    const [command] = await killed.said(/\d+/);
    killed.kill('SIGKILL');
    process.kill(Number(command), 'SIGKILL');
    await killed.ended;
    expect(await place.run([...tick, 'echo', 'ran'])).toMatchObject({ status: 0, stdout: '', stderr: '' });
    expect((await place.run(['run', 'nightly', '--wait', '20s', '--', 'echo', 'ran'])).stdout).toBe('ran\n');
  });

  it('runs again in the next tick', async () => {
    const say = ['run', 'often', '--tick', '5s', '--', 'echo', 'ran'];
    // Both begin with a tick: one that is nearly over may be the next by the time the command has it.
    const begun = (): number => Math.floor(Date.now() / 5_000);
    const said: string[] = [];
    for (let ticks = 0; ticks < 2; ticks++) {
      const tick = begun();
      await until(
        () => begun() > tick,
        () => 'the next tick',
      );
      said.push((await place.run(say)).stdout);
    }
    expect(said).toEqual(['ran\n', 'ran\n']);
  });
});
