/** dynamodb-lock-go. Every name is aliased there; times have nine digits without the zeros at the end, and so has `ttl`. */
import type { AttributeValue, DynamoDB } from '@aws-sdk/client-dynamodb';
import { type Foreign, type ForeignLock, holds, type MachineClock } from './foreign.js';

const GRACE_MS = 5_000;
const TTL_AFTER_LEASE_MS = 2 * 24 * 3_600_000;

const NAMES = { '#0': 'key', '#1': 'leasedUntil', '#2': 'owner' } as const;
const CAN_ACQUIRE = '(attribute_not_exists (#0)) OR (#1 < :0) OR (#2 = :1)';

/** Go's time.RFC3339Nano in UTC: zeros at the end of the fraction are dropped, and the point with them. */
export function goRfc3339Nano(ms: number): string {
  const [whole, fraction = ''] = new Date(ms).toISOString().slice(0, -1).split('.');
  const digits = fraction.replace(/0+$/, '');
  return digits === '' ? `${whole}Z` : `${whole}.${digits}Z`;
}

export class DynamodbLockGo implements Foreign {
  readonly #client: DynamoDB;
  readonly #table: string;
  readonly #clock: MachineClock;

  constructor(client: DynamoDB, table: string, clock: MachineClock = Date.now) {
    this.#client = client;
    this.#table = table;
    this.#clock = clock;
  }

  async acquire(name: string, owner: string, leaseMs: number): Promise<ForeignLock | null> {
    const put = this.#client.putItem({
      TableName: this.#table,
      Item: this.#item(name, owner, leaseMs),
      ConditionExpression: CAN_ACQUIRE,
      ExpressionAttributeNames: NAMES,
      ExpressionAttributeValues: this.#values(owner),
    });
    return (await holds(put)) ? this.handed(name, owner) : null;
  }

  /** A lock handed on: all that it takes is the same key and owner. */
  handed(name: string, owner: string): ForeignLock {
    return {
      owner,
      heartbeat: (leaseMs) => this.#heartbeat(name, owner, leaseMs),
      release: () => this.#release(name, owner),
    };
  }

  /** The lease does not matter, only the owner. */
  #heartbeat(name: string, owner: string, leaseMs: number): Promise<boolean> {
    return holds(
      this.#client.putItem({
        TableName: this.#table,
        Item: this.#item(name, owner, leaseMs),
        ConditionExpression: '#0 = :0',
        ExpressionAttributeNames: { '#0': 'owner' },
        ExpressionAttributeValues: { ':0': { S: owner } },
      }),
    );
  }

  #release(name: string, owner: string): Promise<boolean> {
    return holds(
      this.#client.deleteItem({
        TableName: this.#table,
        Key: { key: { S: name } },
        ConditionExpression: CAN_ACQUIRE,
        ExpressionAttributeNames: NAMES,
        ExpressionAttributeValues: this.#values(owner),
      }),
    );
  }

  #values(owner: string): Record<string, AttributeValue> {
    return { ':0': { S: goRfc3339Nano(this.#clock() - GRACE_MS) }, ':1': { S: owner } };
  }

  #item(name: string, owner: string, leaseMs: number): Record<string, AttributeValue> {
    const now = this.#clock();
    return {
      key: { S: name },
      owner: { S: owner },
      leasedUntil: { S: goRfc3339Nano(now + leaseMs) },
      createdAt: { S: goRfc3339Nano(now) },
      ttl: { S: goRfc3339Nano(now + leaseMs + TTL_AFTER_LEASE_MS) },
    };
  }
}
