/** A heartbeat of the other software between our look at its record and our write. */
import { type DynamodbStoreOptions, dynamodbStore } from 'holdfast/dynamodb';
import { type HttpFaults, startHttpFaults } from 'holdfast-test-servers';
import { expect, it, onTestFinished } from 'vitest';
import { claimOf, clientOf, type Fleet, freshName, say } from './fleet.js';

interface Late {
  readonly fleet: Fleet;
  readonly server: Parameters<typeof startHttpFaults>[0];
  readonly place: DynamodbStoreOptions;
}

export function lateWriteCase(open: () => Late): void {
  it('a heartbeat that comes between our look and our write keeps the lock', async () => {
    const { fleet, server, place } = open();
    const name = freshName();
    const faults: HttpFaults = await startHttpFaults(server);
    onTestFinished(() => faults.stop());
    const store = dynamodbStore(clientOf(faults.url), place);
    // By its own clock it still holds, so its heartbeat is a good one; by DynamoDB's it is over.
    const lock = await fleet.foreign(() => Date.now() - 30_000).acquire(name, 'their-worker', 10_000);
    expect(await store.read(`default/${name}`)).toBeNull();
    // The guess that there is nothing fails, and brings the record; what follows is the take-over.
    const guess = faults.holdRequest({ operation: 'UpdateItem' });
    const takeOver = faults.holdRequest({ operation: 'UpdateItem' });
    const taken = say(store, claimOf(name, 10_000));
    await guess.arrived;
    guess.release();
    await takeOver.arrived;
    expect(await lock?.heartbeat(60_000)).toBe(true);
    const before = await fleet.record(name);
    takeOver.release();
    expect(await taken).toMatchObject({ kind: 'busy', holders: [{ owner: 'their-worker' }] });
    expect(await fleet.record(name)).toEqual(before);
    expect(await lock?.release()).toBe(true);
  });
}
