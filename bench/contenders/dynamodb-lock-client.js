/**
 * The FailClosed lock of dynamodb-lock-client, on version 2 of the SDK: a put if nothing is there, and a delete that
 * compares. It has no lease: what a crashed process holds stays held. The library's other kind, FailOpen, has one, and
 * waits for the whole of it whenever it meets a holder, so that no contended run would come to an end.
 */
import { promisify } from 'node:util';
import library from 'dynamodb-lock-client';
import { dynamodbRoundTrips, makeTable, openDynamodb2 } from '../dynamodb-client.js';
import { RETRY_MS } from '../plan.js';

const TABLE = 'lock-client';

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  prepare: ({ url }) => makeTable(url, TABLE),
  async open({ url }) {
    const { client, close } = openDynamodb2(url);
    const locks = new library.FailClosed({
      dynamodb: client,
      lockTable: TABLE,
      partitionKey: 'key',
      acquirePeriodMs: RETRY_MS,
      retryCount: Number.MAX_SAFE_INTEGER,
    });
    const acquire = promisify(locks.acquireLock.bind(locks));
    return {
      cycle: (key, work) => async () => {
        const lock = await acquire(key);
        if (work) await work();
        await promisify(lock.release.bind(lock))();
      },
      storeCalls: dynamodbRoundTrips,
      close: async () => close(),
    };
  },
};
