/** The guarded write of an object, as docs/guards.md has it, with a pause at its worst moment. */
import { LeaseLostError } from 'holdfast';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ObjectServer, startObjectServer } from './object-server.js';
import { takeover } from './takeover.js';

const TRIES_MAX = 10;

async function put(url: string, text: string, token: number, pause = async () => {}): Promise<void> {
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const found = await fetch(url);
    const stored = found.ok ? ((await found.json()) as { fence: number }) : null;
    if (stored && stored.fence > token) {
      throw new LeaseLostError(`Nothing was written with token ${token}: a later holder has written. Stop.`);
    }
    await pause();
    const condition = {
      [stored ? 'If-Match' : 'If-None-Match']: stored ? (found.headers.get('etag') ?? '') : '*',
    };
    const body = JSON.stringify({ fence: token, text });
    const { ok, status } = await fetch(url, { method: 'PUT', body, headers: condition });
    if (ok) return;
    if (status !== 412) throw new Error(`The object was not written: status ${status}.`);
  }
  throw new Error('The object was not written: it changed again and again.');
}

describe('an object with conditional writes', () => {
  let server: ObjectServer;
  beforeAll(async () => {
    server = await startObjectServer();
  });
  afterAll(() => server?.stop());
  const textOf = async (url: string): Promise<string> =>
    ((await (await fetch(url)).json()) as { text: string }).text;

  it('F1: the late write of a paused holder is refused, and that of its successor stands', async () => {
    const { paused, successor, close } = await takeover('report');
    const url = `${server.url}/report`;
    await put(url, 'of the successor', successor.token);
    await put(url, 'of the successor, again', successor.token);
    await expect(put(url, 'late', paused.token)).rejects.toThrow(LeaseLostError);
    expect(await textOf(url)).toBe('of the successor, again');
    await close();
  });

  it.each(['new', 'there'])(
    'a pause between the look and the write of an object that is %s is no gap',
    async (state) => {
      const { paused, successor, close } = await takeover('report');
      const url = `${server.url}/paused-${state}`;
      if (state === 'there') await put(url, 'of the first', paused.token);
      let pauses = 0;
      const late = put(url, 'late', paused.token, async () => {
        pauses += 1;
        await put(url, 'of the successor', successor.token);
      });
      await expect(late).rejects.toThrow(LeaseLostError);
      expect([await textOf(url), pauses]).toEqual(['of the successor', 1]);
      await close();
    },
  );

  it('what was read is told from the same text of a later holder', async () => {
    const { paused, successor, close } = await takeover('report');
    const url = `${server.url}/same`;
    await put(url, 'the same', paused.token);
    const late = put(url, 'late', paused.token, () => put(url, 'the same', successor.token));
    await expect(late).rejects.toThrow(LeaseLostError);
    await close();
  });

  it('loses the update without the condition: the tests above can fail', async () => {
    const url = `${server.url}/plain`;
    await put(url, 'of the successor', 2);
    await fetch(url, { method: 'PUT', body: JSON.stringify({ fence: 1, text: 'late' }) });
    expect(await textOf(url)).toBe('late');
  });
});
