import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { sqliteStore } from 'holdfast/sqlite';
import { afterEach, describe, expect, it } from 'vitest';
import { atTheEnd, callAt, clearScene, freshFile, open, pause, until } from '../scene.js';

afterEach(clearScene);

const SCRIPT = fileURLToPath(new URL('service-process.js', import.meta.url));
const ACQUIRE = '/v2/locks/a/b/acquire';

interface ServiceProcess {
  readonly url: string;
  readonly child: ChildProcess;
}

async function serve(file: string): Promise<ServiceProcess> {
  const child = spawn(process.execPath, [SCRIPT, file], { stdio: ['ignore', 'pipe', 'inherit'] });
  atTheEnd(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return { url: String(line).trim(), child };
}

const waiting = async (url: string): Promise<unknown> =>
  (await callAt(url, 'GET', '/v2/locks/a/b')).body.waiting;

describe('two service processes on one SQLite file', () => {
  it('are the same locks: what one grants, the other renews and releases', async () => {
    const file = freshFile();
    const [one, two] = [await serve(file), await serve(file)];
    const { body: grant } = await callAt(one.url, 'POST', ACQUIRE, { ttl: '30s', owner: 'ada' });
    expect((await callAt(two.url, 'POST', ACQUIRE, { ttl: '30s' })).status).toBe(423);
    expect((await callAt(two.url, 'GET', '/v2/locks/a/b')).body.holders).toMatchObject([{ owner: 'ada' }]);
    const { hold } = grant;
    expect((await callAt(two.url, 'POST', '/v2/locks/a/b/renew', { hold, ttl: '60s' })).status).toBe(200);
    expect((await callAt(two.url, 'POST', '/v2/locks/a/b/release', { hold })).body.held).toBe(true);
    expect((await callAt(one.url, 'POST', ACQUIRE, { ttl: '30s' })).status).toBe(200);
  });

  it('a lock outlives the process that granted it', async () => {
    const file = freshFile();
    const [one, two] = [await serve(file), await serve(file)];
    const { body } = await callAt(one.url, 'POST', ACQUIRE, { ttl: '60s' });
    one.child.kill('SIGKILL');
    await once(one.child, 'exit');
    expect((await callAt(two.url, 'POST', ACQUIRE, { ttl: '30s', wait: 500 })).status).toBe(423);
    expect(
      (await callAt(two.url, 'POST', '/v2/locks/a/b/renew', { hold: body.hold, ttl: '60s' })).status,
    ).toBe(200);
  });

  it('pass the lock to and fro between waiters of both, one at a time', async () => {
    const file = freshFile();
    const services = [await serve(file), await serve(file)];
    let inside = 0;
    let most = 0;
    const served = new Map<string, number>();
    const tokens: number[] = [];
    const client = async (_: unknown, number: number): Promise<void> => {
      const url = services[number % 2]?.url ?? '';
      for (let round = 0; round < 5; round++) {
        const { status, body } = await open(url, ACQUIRE, { ttl: '30s', wait: '50s' }).answer;
        expect(status).toBe(200);
        inside += 1;
        most = Math.max(most, inside);
        tokens.push(body.token as number);
        served.set(url, (served.get(url) ?? 0) + 1);
        await pause(1);
        inside -= 1;
        await callAt(url, 'POST', '/v2/locks/a/b/release', { hold: body.hold });
      }
    };
    await Promise.all(Array.from({ length: 8 }, client));
    expect(most).toBe(1);
    expect([...served.values()]).toEqual([20, 20]);
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
  }, 90_000);

  it('one is killed with waiters on it: they carry on at the other, and hold nobody up', async () => {
    const file = freshFile();
    const [one, two] = [await serve(file), await serve(file)];
    const { body: first } = await callAt(two.url, 'POST', ACQUIRE, { ttl: '60s' });
    const mine = { ttl: '30s', wait: '30s', owner: 'mine', hold: 'clients-own-secret.1' };
    const atOne = open(one.url, ACQUIRE, mine);
    const alsoAtOne = open(one.url, ACQUIRE, { ttl: '30s', wait: '30s' });
    await until(async () => (await waiting(one.url)) === 2, 'both wait at the first');
    const atTwo = open(two.url, ACQUIRE, { ttl: '30s', wait: '30s', owner: 'other' });
    await until(async () => (await waiting(two.url)) === 2, 'another waits at the second');
    one.child.kill('SIGKILL');
    await expect(atOne.answer).rejects.toThrow();
    await expect(alsoAtOne.answer).rejects.toThrow();
    const again = open(two.url, ACQUIRE, mine);
    await until(async () => Number(await waiting(two.url)) >= 2, 'it carries on at the other');
    await callAt(two.url, 'POST', '/v2/locks/a/b/release', { hold: first.hold });
    const answers = [atTwo, again].map(async ({ answer }) => {
      const { status, body } = await answer;
      await callAt(two.url, 'POST', '/v2/locks/a/b/release', { hold: body.hold });
      return status;
    });
    expect(await Promise.all(answers)).toEqual([200, 200]);
  }, 60_000);

  it('told to end, it answers whoever waits and leaves nothing behind', async () => {
    const file = freshFile();
    const one = await serve(file);
    await callAt(one.url, 'POST', ACQUIRE, { ttl: '60s' });
    const waiter = open(one.url, ACQUIRE, { ttl: '30s', wait: '30s' });
    await until(async () => (await waiting(one.url)) === 1, 'it waits');
    one.child.kill('SIGTERM');
    const { status, body } = await waiter.answer;
    expect([status, body.code]).toEqual([503, 'closing']);
    await once(one.child, 'exit');
    expect(one.child.exitCode).toBe(0);
    const store = sqliteStore(file, { liveness: false });
    atTheEnd(() => store.close());
    expect(await store.read('a/b')).toMatchObject({ waiters: [], holders: [{ owner: 'anonymous' }] });
  });
});
