/** Wake-ups of a quorum while a server is away: clients that are objects here, so that no server is needed. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { quorumStore } from '../../src/stores/quorum/index.js';
import type { RedisClient } from '../../src/stores/redis/index.js';

/** As ioredis, as far as listening goes. `connects`: called for every connection that is opened for listening. */
function clientWith(connects: () => Promise<void>): RedisClient {
  const done = async (): Promise<void> => undefined;
  const client = {
    status: 'ready',
    options: {},
    call: done,
    createBuiltinCommand: () => ({ string: done }),
    on: () => client,
    off: () => client,
    duplicate: () => client,
    connect: connects,
    disconnect: () => undefined,
    subscribe: done,
    unsubscribe: done,
  };
  return client;
}

describe('listening at a quorum', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('tries a server that is away again, until the store is closed', async () => {
    vi.useFakeTimers();
    let attempts = 0;
    const here = (): RedisClient => clientWith(async () => undefined);
    const away = clientWith(async () => {
      attempts += 1;
      throw new Error('It is away.');
    });
    const store = quorumStore([here(), here(), away]);
    await store.listen?.('inbox', () => undefined);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(attempts).toBe(2);
    await store.close();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(attempts).toBe(2);
  });

  it('leaves nothing behind where no server can be listened to: the engine listens again by itself', async () => {
    vi.useFakeTimers();
    let attempts = 0;
    let isAway = true;
    const client = (): RedisClient =>
      clientWith(async () => {
        attempts += 1;
        if (isAway) throw new Error('It is away.');
      });
    const store = quorumStore([client(), client(), client()]);
    await expect(store.listen?.('inbox', () => undefined)).rejects.toThrow();
    expect(attempts).toBe(3);
    isAway = false;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(attempts).toBe(3);
    await store.close();
  });
});
