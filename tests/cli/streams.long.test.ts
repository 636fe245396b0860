import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { memoryStore } from 'holdfast/memory';
import { createService } from 'holdfast-service';
import { describe, expect, it } from 'vitest';
import { fullPipe } from './full-pipe.js';
import { BINARY, isAlive, type Running, until, usePlace } from './holdfast.js';
import { nonBlockingPipes } from './shared-pipes.js';

const place = usePlace();
const HOLDFAST = `'${process.execPath}' '${BINARY}'`;

/** A shell, for what `holdfast` reads and writes to be real pipes and files. */
function shell(script: string): Running {
  return place.startOther('bash', ['-c', script]);
}

/** Nobody can write to the store of this place until the function returned is called. */
function blockStore(): () => void {
  const database = new DatabaseSync(join(place.folder, 'locks.db'));
  database.exec('PRAGMA busy_timeout = 5000; BEGIN IMMEDIATE');
  return () => {
    database.exec('ROLLBACK');
    database.close();
  };
}

describe.runIf(process.platform === 'linux')('a stderr that cannot be written', () => {
  const script = 'trap "echo cleaned; exit 0" TERM; echo in $$; while :; do sleep 0.05; done';

  it('because the disk is full, ends nothing: the command gets TERM in time and run exits 76', async () => {
    const running = shell(`exec ${HOLDFAST} run job --ttl 2s -- sh -c '${script}' 2>/dev/full`);
    await running.said(/in \d+/);
    const unblock = blockStore();
    try {
      expect(await running.ended).toMatchObject({ status: 76, stdout: expect.stringMatching(/cleaned\n$/) });
    } finally {
      unblock();
    }
  });

  it('because nobody reads the pipe, does not keep TERM and KILL from the command, nor the status', async () => {
    const pipe = await fullPipe(place, 'unread');
    const stubborn = 'trap "" TERM; echo in $$; while :; do sleep 0.05; done';
    const running = shell(`exec ${HOLDFAST} run job --ttl 2s -- sh -c '${stubborn}' 2>unread`);
    const [, command] = await running.said(/in (\d+)/);
    const unblock = blockStore();
    try {
      const began = Date.now();
      const { status } = await running.ended;
      expect(status).toBe(76);
      expect(Date.now() - began).toBeLessThan(15_000);
      expect(isAlive(Number(command))).toBe(false);
    } finally {
      unblock();
      pipe.close();
    }
  });

  it('because nobody reads the socket, does not keep them from the command either', async () => {
    const script = 'trap "" TERM; echo in $$; yes >&2';
    const running = place.start(['run', 'job', '--ttl', '2s', '--', 'sh', '-c', script]);
    running.child.stderr?.pause();
    const [, command] = await running.said(/in (\d+)/);
    const unblock = blockStore();
    try {
      await until(
        () => !isAlive(Number(command)),
        () => 'the end of the command',
      );
    } finally {
      unblock();
    }
    running.child.stderr?.resume();
    expect((await running.ended).status).toBe(76);
  });

  it('for a while, gets the lines in their order once it can be', async () => {
    const pipe = await fullPipe(place, 'slow');
    const running = shell(`exec ${HOLDFAST} run job --ttl 2s -- sh -c '${script}' 2>slow`);
    await running.said(/in \d+/);
    const unblock = blockStore();
    try {
      await running.said(/cleaned/);
      let text = '';
      await until(
        () => {
          text += pipe.drain();
          return /ended/.test(text);
        },
        () => `the last line in ${text}`,
      );
      expect(text).toMatch(
        /^holdfast: .+ sending TERM .+\n(?:.+\n)*holdfast: .+ the command was ended .+\n$/,
      );
      expect((await running.ended).status).toBe(76);
    } finally {
      unblock();
      pipe.close();
    }
  });
});

describe.runIf(process.platform === 'linux')('pipes that are shared with others', () => {
  it('are not made non-blocking on the embedded store', async () => {
    expect(await nonBlockingPipes(place, place.store)).toEqual([]);
  });

  it('are not made non-blocking on a service', async () => {
    const store = memoryStore();
    const service = createService({ store });
    try {
      expect(await nonBlockingPipes(place, await service.listen())).toEqual([]);
    } finally {
      await service.close();
      await store.close();
    }
  });
});

describe('a stdout that nobody reads any more', () => {
  it('does not change the status of the command', async () => {
    const { stdout } = await shell(
      `{ { ${HOLDFAST} run job -- sh -c 'exit 9'; echo "status $?" >&3; } | true; } 3>&1`,
    ).ended;
    expect(stdout).toBe('status 9\n');
  });

  it('gets nothing from run', async () => {
    const { stdout } = await shell(`${HOLDFAST} run job -- sh -c 'exit 5' >/dev/full; echo "status $?"`)
      .ended;
    expect(stdout).toBe('status 5\n');
  });

  it('ends a long list quietly', async () => {
    const { stdout, stderr } = await shell(
      `set -o pipefail; ${HOLDFAST} --help | head -1; echo "status $?"; { { sleep 0.2; ${HOLDFAST} --help; echo "status $?" >&3; } | true; } 3>&1`,
    ).ended;
    expect(stdout).toBe(
      'holdfast runs commands under a lock, and shows who holds which lock.\nstatus 0\nstatus 0\n',
    );
    expect(stderr).toBe('');
  });

  it('but is there is told of, when it cannot be written', async () => {
    const { stdout, stderr } = await shell(`${HOLDFAST} --help >/dev/full; echo "status $?"`).ended;
    expect(stdout).toBe('status 1\n');
    expect(stderr).toMatch(/^holdfast: the output cannot be written: ENOSPC.*\n$/);
  });
});

describe('a long output', () => {
  it('arrives whole, however slowly it is read', async () => {
    const keys = Array.from({ length: 30 }, (_, at) => `${'k'.repeat(300)}:${at}`);
    const holders = keys.map((key) =>
      place.start(['run', key, '--min-hold', '1h', '--owner', 'o'.repeat(200), '--', 'true']),
    );
    for (const { ended } of holders) expect((await ended).status).toBe(0);
    const lists = Array.from({ length: 8 }, () => `${HOLDFAST} ls --json;`).join('');
    const { stdout } = await shell(`{ ${lists} } | { sleep 1; cat; }`).ended;
    expect(stdout.match(/"key": /g)).toHaveLength(8 * keys.length);
  });
});

describe('holdfast watch', () => {
  it('ends with the next change after its reader left', async () => {
    const holder = place.start(['run', 'job', '--', 'sh', '-c', 'echo in; exec sleep 60']);
    await holder.said(/in/);
    const watching = shell(`set -o pipefail; ${HOLDFAST} watch | head -1; echo "status $?"`);
    await watching.said(/held by/);
    holder.kill('SIGTERM');
    const { stdout, stderr } = await watching.ended;
    expect(stdout).toMatch(/job {2}held by .+\nstatus 0\n$/);
    expect(stderr).toBe('');
  });

  it('goes on after USR1, and opens no debugger', async () => {
    const watching = place.start(['watch', '--every', '50ms']);
    const holder = place.start(['run', 'job', '--', 'sh', '-c', 'echo in; exec sleep 60']);
    await watching.said(/held by/);
    watching.kill('SIGUSR1');
    holder.kill('SIGTERM');
    await watching.said(/is free/);
    watching.kill('SIGINT');
    expect(await watching.ended).toMatchObject({ status: 0, stderr: '' });
  });
});
