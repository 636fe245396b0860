/** LockServiceCentral on DynamoDB. Seconds everywhere; a renewal adds to what is there. */
import type { DynamoDB } from '@aws-sdk/client-dynamodb';
import { type Foreign, type ForeignLock, holds, type MachineClock } from './foreign.js';

let instances = 0;

export class LockServiceCentral implements Foreign {
  readonly #client: DynamoDB;
  readonly #table: string;
  readonly #clock: MachineClock;
  readonly #namespace: string;

  constructor(client: DynamoDB, table: string, clock: MachineClock = Date.now, namespace = 'default') {
    this.#client = client;
    this.#table = table;
    this.#clock = clock;
    this.#namespace = namespace;
  }

  async acquire(
    name: string,
    owner: string,
    leaseMs: number,
    instanceId = `instance-${process.pid}-${instances++}`,
  ): Promise<ForeignLock | null> {
    const now = this.#seconds();
    const leaseDuration = Math.ceil(leaseMs / 1_000);
    const put = this.#client.putItem({
      TableName: this.#table,
      Item: {
        lockId: { S: `${this.#namespace}:${name}` },
        namespace: { S: this.#namespace },
        lockName: { S: name },
        owner: { S: owner },
        instanceId: { S: instanceId },
        leaseDuration: { N: String(leaseDuration) },
        expiry: { N: String(now + leaseDuration) },
      },
      ConditionExpression:
        'attribute_not_exists(lockId) OR expiry < :now OR (#owner = :owner AND instanceId = :instanceId)',
      ExpressionAttributeNames: { '#owner': 'owner' },
      ExpressionAttributeValues: {
        ':now': { N: String(now) },
        ':owner': { S: owner },
        ':instanceId': { S: instanceId },
      },
    });
    return (await holds(put)) ? this.lockOf(name, owner, instanceId) : null;
  }

  /** Whoever has owner and instance has the lock. */
  lockOf(name: string, owner: string, instanceId: string): ForeignLock {
    return {
      owner,
      heartbeat: (ms) => this.#renew(name, owner, instanceId, Math.ceil(ms / 1_000)),
      release: () => this.release(name, owner, instanceId, '#owner'),
    };
  }

  #renew(name: string, owner: string, instanceId: string, seconds: number): Promise<boolean> {
    return holds(
      this.#client.updateItem({
        TableName: this.#table,
        Key: { lockId: { S: `${this.#namespace}:${name}` } },
        ConditionExpression:
          'attribute_exists(lockId) AND expiry >= :now AND #owner = :owner AND instanceId = :instanceId',
        UpdateExpression: 'SET leaseDuration = leaseDuration + :addDuration, expiry = expiry + :addDuration',
        ExpressionAttributeNames: { '#owner': 'owner' },
        ExpressionAttributeValues: {
          ':now': { N: String(this.#seconds()) },
          ':owner': { S: owner },
          ':instanceId': { S: instanceId },
          ':addDuration': { N: String(seconds) },
        },
        ReturnValues: 'ALL_NEW',
      }),
    );
  }

  /** Its first version wrote `owner` as it is, a reserved word: the call is refused. */
  release(name: string, owner: string, instanceId: string, ownerName: '#owner' | 'owner'): Promise<boolean> {
    return holds(
      this.#client.deleteItem({
        TableName: this.#table,
        Key: { lockId: { S: `${this.#namespace}:${name}` } },
        ConditionExpression: `${ownerName} = :owner AND instanceId = :instanceId`,
        ...(ownerName === '#owner' && { ExpressionAttributeNames: { '#owner': 'owner' } }),
        ExpressionAttributeValues: { ':owner': { S: owner }, ':instanceId': { S: instanceId } },
      }),
    );
  }

  #seconds(): number {
    return Math.floor(this.#clock() / 1_000);
  }
}
