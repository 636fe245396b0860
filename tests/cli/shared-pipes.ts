/** Pipes that `holdfast` shares with others: its neighbours in a pipeline, and the shell that started it. */
import { constants, readFileSync } from 'node:fs';
import { createLocks, openStore } from 'holdfast';
import { BINARY, type Place } from './holdfast.js';

const COMMAND = `'${process.execPath}' '${BINARY}' watch shared-pipes --every 50ms`;

/**
 * Which of stdin, stdout and stderr are non-blocking while `holdfast` uses the store. Looked at while it runs: Node
 * itself sets them back when it ends, and when it starts a command.
 */
export async function nonBlockingPipes(place: Place, store: string): Promise<readonly number[]> {
  const locks = createLocks(await openStore(store));
  try {
    await locks.acquire('shared-pipes');
    const watching = place.startOther('bash', [
      '-c',
      `{ { echo "pid $BASHPID" >&3; exec ${COMMAND} --store '${store}' 2> >(exec cat >&3); } | exec cat; } 3>&1`,
    ]);
    const [, pid] = await watching.said(/pid (\d+)\n[\s\S]*held by/);
    const nonBlocking = [0, 1, 2].filter((fd) => {
      const info = readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'utf8');
      const [, flags = ''] = /^flags:\s+(\d+)$/m.exec(info) ?? [];
      return (Number.parseInt(flags, 8) & constants.O_NONBLOCK) !== 0;
    });
    process.kill(Number(pid), 'SIGTERM');
    await watching.ended;
    return nonBlocking;
  } finally {
    await locks.close();
  }
}
