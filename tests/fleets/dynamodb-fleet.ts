/** A fleet on a table of DynamoDB Local: opened, tested by the cases that every layout passes, and closed. */
import type { AttributeValue, DynamoDB } from '@aws-sdk/client-dynamodb';
import type { DynamodbLayout } from 'holdfast/dynamodb';
import type { Store } from 'holdfast/protocol';
import { type DynamodbServer, startDynamodb } from 'holdfast-test-servers';
import { afterAll, beforeAll } from 'vitest';
import { exclusionCases } from './cases-exclusion.js';
import { plainCases } from './cases-plain.js';
import { processCases } from './cases-process.js';
import { raceCase } from './cases-race.js';
import { closeLocks, type Fleet, openTable } from './fleet.js';
import type { Foreign, MachineClock } from './foreign.js';

type Item = Record<string, AttributeValue>;

interface Software {
  readonly layout: DynamodbLayout;
  keyOf(name: string, namespace?: string): Item;
  foreign(client: DynamoDB, table: string, clock?: MachineClock): Foreign;
  readonly clocksApartMs: number;
  readonly afterForeignMs: number;
  readonly afterOursMs: number;
  /** How often in a row the other software can extend a lock. */
  readonly heartbeats: number;
}

export class DynamodbFleet implements Fleet {
  server!: DynamodbServer;
  client!: DynamoDB;
  table!: string;
  url!: string;
  store!: () => Store;
  readonly layout: DynamodbLayout;
  readonly clocksApartMs: number;
  readonly afterForeignMs: number;
  readonly afterOursMs: number;
  readonly #software: Software;

  constructor(software: Software) {
    this.#software = software;
    const { layout, clocksApartMs, afterForeignMs, afterOursMs } = software;
    this.layout = layout;
    this.clocksApartMs = clocksApartMs;
    this.afterForeignMs = afterForeignMs;
    this.afterOursMs = afterOursMs;
  }

  async open(): Promise<void> {
    this.server = await startDynamodb();
    Object.assign(this, await openTable(this.server.url, this.layout));
  }

  async itemOf(name: string, namespace?: string): Promise<Item | undefined> {
    const Key = this.#software.keyOf(name, namespace);
    return (await this.client.getItem({ TableName: this.table, Key, ConsistentRead: true })).Item;
  }

  foreign(clock?: MachineClock): Foreign {
    return this.#software.foreign(this.client, this.table, clock);
  }

  async record(name: string): Promise<Item | null> {
    return (await this.itemOf(name)) ?? null;
  }

  async forget(name: string): Promise<void> {
    await this.client.deleteItem({ TableName: this.table, Key: this.#software.keyOf(name) });
  }
}

/** The cases that every layout passes. The returned fleet is open once the tests run. */
export function dynamodbFleet(software: Software): DynamodbFleet {
  const fleet = new DynamodbFleet(software);
  beforeAll(() => fleet.open());
  afterAll(async () => {
    await closeLocks();
    await fleet.server.stop();
  });
  // The longest first: they run side by side.
  processCases(() => fleet);
  exclusionCases(() => fleet, software);
  plainCases(() => fleet);
  raceCase(() => fleet);
  return fleet;
}
