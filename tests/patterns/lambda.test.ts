/** examples/patterns/lambda.js: sandboxes as processes that freeze between invocations, on DynamoDB Local. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createLocks, type Locks, openStore } from 'holdfast';
import { available, startDynamodb } from 'holdfast-test-servers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { clientOf, tableOn } from '../dynamodb/store-scene.js';
import { atTheEnd, clearScene, until } from '../scene.js';
import { Child } from '../sqlite/child.js';

const SANDBOX = new URL('./lambda-sandbox.js', import.meta.url);

interface Settled {
  readonly value?: { readonly status?: number; readonly heldBy?: readonly string[] };
  readonly reason?: string;
  readonly leftMs: number;
}

class Sandbox {
  readonly #child: Child;

  constructor(store: string) {
    this.#child = new Child(SANDBOX, [], ['env', `HOLDFAST_STORE=${store}`]);
    atTheEnd(() => this.#child.kill());
  }

  get pid(): number {
    return this.#child.pid;
  }

  async invoke(timeoutMs: number, url: string): Promise<Settled> {
    const { lines } = this.#child;
    const before = lines.length;
    this.#child.tell(`${timeoutMs} ${JSON.stringify({ job: 'nightly', url })}`);
    const hasSettled = (): boolean => {
      if (lines.length > before) return true;
      // Again and again: it may only be about to freeze after the invocation before.
      this.#child.signal('SIGCONT');
      return false;
    };
    await until(hasSettled, 'the handler settled');
    return JSON.parse(lines[before] ?? '') as Settled;
  }
}

describe.runIf(available('dynamodb'))('a Lambda', () => {
  /** Calls of the job that nobody has answered yet. */
  const calls: ServerResponse[] = [];
  let url: string;
  let store: string;
  let locks: Locks;

  beforeEach(async () => {
    const server = createServer((_, response) => void calls.push(response)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    atTheEnd(() => server.closeAllConnections());
    atTheEnd(() => server.close());

    const dynamodb = await startDynamodb();
    const client = clientOf(dynamodb.url);
    const table = await tableOn(client);
    client.destroy();
    store = `dynamodb://test:test@eu-west-1/${table}?endpoint=${dynamodb.url}`;
    locks = createLocks(await openStore(store));
    atTheEnd(() => locks.close({ drain: 0 }));
  });
  afterEach(async () => {
    await clearScene();
    calls.length = 0;
  });

  const isCalled = (times: number): Promise<void> => until(() => calls.length >= times, `call ${times} came`);

  it('runs a job once at a time, and leaves nothing behind when it is frozen', async () => {
    const one = new Sandbox(store);
    const other = new Sandbox(store);
    const running = one.invoke(120_000, url);
    await isCalled(1);

    const refused = await other.invoke(20_000, url);
    expect(refused.value?.heldBy).toEqual([expect.stringContaining(`:${one.pid}`)]);
    expect(calls.length).toBe(1);

    calls[0]?.end();
    expect((await running).value).toEqual({ status: 200 });
    expect((await locks.inspect('job:nightly'))?.holders ?? []).toEqual([]);

    // Thawed, the other one gets the lock; so does the first one after it.
    for (const [index, sandbox] of [other, one].entries()) {
      const again = sandbox.invoke(120_000, url);
      await isCalled(index + 2);
      calls[index + 1]?.end();
      expect((await again).value).toEqual({ status: 200 });
    }
  });

  it('aborts work that takes too long before the invocation ends, and others get the lock', async () => {
    const sandbox = new Sandbox(store);
    // A cold sandbox and a server that has just started take long for their first call.
    const first = sandbox.invoke(120_000, url);
    await isCalled(1);
    calls[0]?.end();
    await first;
    const settled = await sandbox.invoke(12_000, url);
    expect(settled.reason).toBe('max-hold');
    expect(settled.leftMs).toBeGreaterThan(0);
    expect(calls.length).toBe(2);
    // The sandbox may be frozen before the store was told. Then the ttl ends the lease.
    const lease = await locks.acquire('job:nightly', { wait: '1m' });
    await lease.release();
  });
});
