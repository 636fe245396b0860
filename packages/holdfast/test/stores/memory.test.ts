import { afterAll, describe, expect, it } from 'vitest';
import { steadyMs } from '../../src/clock.js';
import { memoryStore } from '../../src/stores/memory.js';
import { conformanceSuite, type Harness } from '../../src/testkit/index.js';
import { connectionTo } from '../testkit/connection.js';

let ahead = 0;
const store = memoryStore({ now: () => steadyMs() + ahead });

const harness: Harness = {
  name: 'memory',
  open: () => Promise.resolve(connectionTo(store)),
  async forget() {
    ahead += 60_000;
    await Promise.all(
      store.apply(Array.from({ length: 500 }, () => ({ kind: 'evict', key: 'x', upToToken: 0 }))),
    );
  },
};

describe('the memory store', () => {
  afterAll(() => store.close());

  for (const { name, run } of conformanceSuite(harness)) it(name, run);

  it('forgets everything when closed, and refuses what comes after', async () => {
    const own = memoryStore();
    await own.close();
    await own.close();
    await expect(own.apply([{ kind: 'evict', key: 'k', upToToken: 0 }])[0]).rejects.toThrow(/closed/);
  });
});
