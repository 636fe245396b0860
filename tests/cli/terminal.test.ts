import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { available, startRedis } from 'holdfast-test-servers';
import { describe, expect, it } from 'vitest';
import { BINARY, type Running, SIGNAL_TELLER, sleep, usePlace } from './holdfast.js';

const place = usePlace();
const hasTerminals =
  process.platform === 'linux' && spawnSync('sh', ['-c', 'command -v script']).status === 0;

/** `script` gives a command a terminal of its own, and types into it what we write. */
function atTerminal(args: string): Running {
  return place.startOther('script', [
    '-qefc',
    `exec '${process.execPath}' '${BINARY}' ${args}`,
    'typescript',
  ]);
}

async function hold(key: string): Promise<Running> {
  const running = place.start(['run', key, '--owner', 'alice', '--', 'sh', '-c', 'echo in; exec sleep 60']);
  await running.said(/in/);
  return running;
}

describe.runIf(hasTerminals)('at a terminal', () => {
  it('keys that signal reach the command once, not twice', async () => {
    writeFileSync(join(place.folder, 'teller.js'), SIGNAL_TELLER);
    const session = atTerminal(`run job -- '${process.execPath}' teller.js`);
    await session.said(/ready/);
    session.child.stdin?.write('\u0003');
    await session.said(/got SIGINT/);
    session.child.stdin?.write('\u001c');
    await session.said(/got SIGQUIT/);
    await sleep(300);
    session.child.stdin?.write('\u0004');
    const ended = await session.ended;
    expect(ended.status).toBe(7);
    expect(ended.stdout.match(/got SIGINT/g)).toHaveLength(1);
    expect(ended.stdout.match(/got SIGQUIT/g)).toHaveLength(1);
  });

  it('a command that waits says whom for and at which place, unless it is to be quiet', async () => {
    await hold('job');
    const first = atTerminal('run job --wait 1m -- true');
    await first.said(/holdfast: waiting for "job", held by alice; place 1 in the queue/);
    const second = atTerminal('run job --wait 1m -- true');
    await second.said(/held by alice; place 2 in the queue/);
    const quiet = atTerminal('run job --wait 1m --quiet -- true');
    await place.waiting('job', 3);
    for (const session of [first, second, quiet]) session.child.stdin?.write('\u0003');
    const [, , { status, stdout }] = await Promise.all([first.ended, second.ended, quiet.ended]);
    expect(status).toBe(130);
    expect(stdout).not.toContain('waiting for "job", held by');
  });

  it('Ctrl-C ends the waiting for a lock', async () => {
    await hold('job');
    const session = atTerminal('run job --wait 1m -- true');
    await place.waiting('job', 1);
    session.child.stdin?.write('\u0003');
    expect((await session.ended).status).toBe(130);
    await place.waiting('job', 0);
  });

  it('evict shows the holder and asks; anything but yes does nothing', async () => {
    const holder = await hold('job');
    const refused = atTerminal('evict job');
    await refused.said(/"job" is held by alice since .+[\s\S]+Evict\? \[y\/N\]/);
    refused.child.stdin?.write('\r');
    const { status, stdout } = await refused.ended;
    expect(status).toBe(1);
    expect(stdout).toContain('nothing was done');
    const confirmed = atTerminal('evict job');
    await confirmed.said(/Evict/);
    confirmed.child.stdin?.write('y\r');
    expect((await confirmed.ended).status).toBe(0);
    expect((await holder.ended).status).toBe(76);
  });

  it.each([
    ['Ctrl-C', '\u0003', 130],
    ['Ctrl-D', '\u0004', 1],
  ])('evict takes %s for a no', async (_name, typed, expected) => {
    const holder = await hold('job');
    const session = atTerminal('evict job');
    await session.said(/Evict/);
    session.child.stdin?.write(typed);
    const { status, stdout } = await session.ended;
    expect(stdout).toMatch(/^holdfast: nothing was done\s*$/m);
    expect(stdout).not.toContain('bug');
    expect(status).toBe(expected);
    expect(holder.child.exitCode).toBeNull();
  });

  it('F31: evict ends nobody who came while it asked', async () => {
    const first = await hold('job');
    const session = atTerminal('evict job');
    await session.said(/Evict/);
    first.kill('SIGTERM');
    await first.ended;
    const second = await hold('job');
    session.child.stdin?.write('y\r');
    const { status, stdout } = await session.ended;
    expect(status).toBe(1);
    expect(stdout).toContain('the holders of "job" changed meanwhile; no lease was ended');
    expect(second.child.exitCode).toBeNull();
  });

  it('watch redraws in place, in colour, and puts the cursor back at the end', async () => {
    const session = atTerminal('watch --every 50ms');
    await session.said(/No key is held or waited for/);
    const holder = await hold('job');
    await session.said(/1 in use[\s\S]+KEY[\s\S]+alice/);
    holder.kill('SIGTERM');
    await session.said(/alice[\s\S]+0 in use[\s\S]+No key is held or waited for/);
    session.child.stdin?.write('\u0003');
    const { status, stdout } = await session.ended;
    expect(status).toBe(0);
    expect(stdout).toContain('\u001b[36malice\u001b[39m');
    expect(stdout.lastIndexOf('\u001b[?25h')).toBeGreaterThan(stdout.lastIndexOf('\u001b[?25l'));
  });

  it('watch puts the cursor back while Ctrl-Z has stopped it', async () => {
    const session = atTerminal('watch --every 50ms');
    await session.said(/No key is held or waited for/);
    const { pid = 0 } = session.child;
    const watching = Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8'));
    session.child.stdin?.write('\u001a');
    await expect.poll(() => readFileSync(`/proc/${watching}/stat`, 'utf8')).toContain(' T ');
    // `script` stops with it, a moment later.
    const going = setInterval(() => {
      for (const stopped of [pid, watching]) process.kill(stopped, 'SIGCONT');
    }, 50);
    try {
      await session.said(/\?25h[\s\S]+\?25l[\s\S]+No key is held or waited for/);
    } finally {
      clearInterval(going);
    }
    session.child.stdin?.write('\u0003');
    const { status, stdout } = await session.ended;
    expect(status).toBe(0);
    expect(stdout.lastIndexOf('\u001b[?25h')).toBeGreaterThan(stdout.lastIndexOf('\u001b[?25l'));
  });

  it('watch puts the cursor back at once when it ends while the store hangs', async () => {
    const silent = createServer((socket) => socket.on('error', () => undefined).resume()).listen(
      0,
      '127.0.0.1',
    );
    await once(silent, 'listening');
    try {
      const { port } = silent.address() as AddressInfo;
      const session = atTerminal(`watch --store http://127.0.0.1:${port}`);
      await once(silent, 'connection');
      session.child.stdin?.write('\u0003');
      await sleep(300);
      // The second one ends the process, whatever it is about to do.
      session.child.stdin?.write('\u0003');
      const { stdout } = await session.ended;
      expect(stdout.lastIndexOf('\u001b[?25h')).toBeGreaterThan(stdout.lastIndexOf('\u001b[?25l'));
    } finally {
      silent.close();
    }
  });

  it.runIf(available('redis', { own: true }))('F7: watch outlasts an outage of the store', async () => {
    const server = await startRedis({ own: true });
    try {
      const session = atTerminal(`watch --every 50ms --store '${server.url}'`);
      await session.said(/No key is held or waited for/);
      await server.kill();
      await session.said(/Not read since then: /);
      await server.restart();
      // The line after the title is empty again.
      await session.said(/Not read[\s\S]+in use[^\n]*\n[^\nN]*\n/);
      session.child.stdin?.write('\u0003');
      expect((await session.ended).status).toBe(0);
    } finally {
      await server.stop();
    }
  });
});
