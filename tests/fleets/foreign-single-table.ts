/** The DynamoDB lock of a single-table design in Go, for Lambdas. It never extends a lock. */
import type { DynamoDB } from '@aws-sdk/client-dynamodb';
import { type Foreign, type ForeignLock, holds, type MachineClock } from './foreign.js';

/** Go's time.RFC3339 in UTC: whole seconds, cut off. */
function goRfc3339(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

export class SingleTable implements Foreign {
  readonly #client: DynamoDB;
  readonly #table: string;
  readonly #clock: MachineClock;

  constructor(client: DynamoDB, table: string, clock: MachineClock = Date.now) {
    this.#client = client;
    this.#table = table;
    this.#clock = clock;
  }

  async acquire(name: string, owner: string, leaseMs: number): Promise<ForeignLock | null> {
    const now = this.#clock();
    const lockId = `${owner}_${now}000000`;
    const put = this.#client.putItem({
      TableName: this.#table,
      Item: {
        PK: { S: `LOCK#${name}` },
        SK: { S: 'LOCK' },
        LockID: { S: lockId },
        Owner: { S: owner },
        AcquiredAt: { S: goRfc3339(now) },
        ExpiresAt: { S: goRfc3339(now + leaseMs) },
        TTL: { N: String(Math.floor((now + leaseMs) / 1_000)) },
      },
      ConditionExpression: 'attribute_not_exists(PK) OR ExpiresAt < :now',
      ExpressionAttributeValues: { ':now': { S: goRfc3339(now) } },
    });
    if (!(await holds(put))) return null;
    return {
      owner,
      heartbeat: () => Promise.reject(new Error('lock extension not implemented')),
      release: () => this.#release(name, lockId, owner, '#owner'),
    };
  }

  /** As the original has it: `Owner` is a reserved word, and the call is refused. */
  releaseUnaliased(name: string, lockId: string, owner: string): Promise<boolean> {
    return this.#release(name, lockId, owner, 'Owner');
  }

  #release(name: string, lockId: string, owner: string, ownerName: '#owner' | 'Owner'): Promise<boolean> {
    return holds(
      this.#client.deleteItem({
        TableName: this.#table,
        Key: { PK: { S: `LOCK#${name}` }, SK: { S: 'LOCK' } },
        ConditionExpression: `LockID = :lockId AND ${ownerName} = :owner`,
        ...(ownerName === '#owner' && { ExpressionAttributeNames: { '#owner': 'Owner' } }),
        ExpressionAttributeValues: { ':lockId': { S: lockId }, ':owner': { S: owner } },
      }),
    );
  }
}
