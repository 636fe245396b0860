import type { Store } from 'holdfast';
import { InvalidArgumentError } from 'holdfast';
import { describe, expect, it } from 'vitest';
import { openTerminal } from '../src/printing/terminal.js';
import { recordCommand } from '../src/run/process-record.js';
import { TextOutlet } from './text-outlet.js';

/** A store that is too busy to take so many notes. */
function busyStore(times: number, error: () => Error = () => new Error('busy')) {
  const noted: string[] = [];
  let left = times;
  const note = async (text: string): Promise<void> => {
    if (left-- > 0) throw error();
    noted.push(text);
  };
  const store = {
    recordProcess: (pid: number) => note(`+${pid}`),
    forgetProcess: (pid: number) => note(`-${pid}`),
  };
  // The rest of a store is not asked for anything here.
  return { store: store as unknown as Store, noted };
}

function listener() {
  const outlet = new TextOutlet();
  return { terminal: openTerminal(outlet, outlet, {}, false), written: outlet.written };
}

async function soon(met: () => boolean): Promise<void> {
  for (let looks = 0; looks < 6_000 && !met(); looks++)
    await new Promise((resolve) => setTimeout(resolve, 10));
}

const never = new AbortController().signal;

describe('the note of a command', () => {
  it('is made before the start, and exchanged for its process after it, however busy the store is', async () => {
    const { store, noted } = busyStore(3);
    const { terminal, written } = listener();
    const recordStart = await recordCommand(store, { held: true }, terminal, never);
    expect(noted).toEqual(['+1']);
    recordStart(42, never);
    await soon(() => noted.length === 3);
    expect(noted).toEqual(['+1', '+42', '-1']);
    expect(written).toEqual([]);
  });

  it('is given up with the lease, with a signal, and when the command has ended', async () => {
    const { store, noted } = busyStore(Number.POSITIVE_INFINITY);
    const { terminal } = listener();
    let looks = 0;
    const lease = {
      get held() {
        looks += 1;
        return looks < 3;
      },
    };
    await recordCommand(store, lease, terminal, never);
    expect(looks).toBe(3);
    const stopping = new AbortController();
    const announcing = recordCommand(store, { held: true }, terminal, stopping.signal);
    stopping.abort();
    await announcing;
    expect(noted).toEqual([]);
  });

  it('is a warning when the store refuses it for ever', async () => {
    const { store } = busyStore(1, () => new InvalidArgumentError('no such thing'));
    const { terminal, written } = listener();
    await recordCommand(store, { held: true }, terminal, never);
    expect(written).toEqual([
      'holdfast: warning: the process of the command could not be recorded: no such thing\n',
    ]);
  });
});
