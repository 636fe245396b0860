import { memoryStore } from 'holdfast/memory';
import { describe, it } from 'vitest';
import { expectExclusion } from '../../../../tests/faults/bad-network.js';
import { connectionTo } from './connection.js';

describe('locks over a faulty store', () => {
  it.concurrent.each([1, 2, 3, 4])(
    'F4, F5, F7, F27: stay exclusive, with rising tokens, and leave nothing (seed %i)',
    async (seed) => {
      const store = memoryStore();
      const stores = [1, 2, 3, 4].map(() => connectionTo(store));
      await expectExclusion({ stores, key: 'k', seed, runMs: 3_000, ttlMs: [150, 600] }, store);
    },
  );
});
