/** A fleet: Holdfast and other software on one table or bucket. What the cases need of it, whatever the layout. */
import { randomUUID } from 'node:crypto';
import { DynamoDB } from '@aws-sdk/client-dynamodb';
import { createLocks, type KeyInfo, type Locks, type LocksOptions } from 'holdfast';
import { createTable, type DynamodbLayout, dynamodbStore } from 'holdfast/dynamodb';
import type { Claim, Store } from 'holdfast/protocol';
import { claimOf as claimBy } from '../store-talk.js';
import type { Foreign, MachineClock } from './foreign.js';

export { say } from '../store-talk.js';

export interface Fleet {
  readonly layout: { readonly name: string };
  /** The same place for `openStore`. */
  readonly url: string;
  store(): Store;
  /** The other software, on a machine with this clock. */
  foreign(clock?: MachineClock): Foreign;
  /** The record as it lies there; null where there is none. */
  record(name: string): Promise<unknown>;
  /** Takes the record away, as cleaning up does. */
  forget(name: string): Promise<void>;
  /** By how much the clocks of its machines may differ from the store's. */
  readonly clocksApartMs: number;
  /** How long after the end of its lease a lock of the other software still counts, at most. */
  readonly afterForeignMs: number;
  /** How long after the end of our lease the other software waits, at most. */
  readonly afterOursMs: number;
  /** For a process that keeps its lock on a busy machine. Default 4 s. */
  readonly holderTtlMs?: number;
}

let names = 0;

/** None of them is the beginning of another. */
export function freshName(): string {
  return `job-${process.pid}-${names++}-`;
}

const opened: Locks[] = [];

/** Locks as another process would have them: nothing is shared but the client. */
export function locksOf(fleet: Fleet, options: LocksOptions = {}): Locks {
  const locks = createLocks(fleet.store(), options);
  opened.push(locks);
  return locks;
}

/** Not after each test: they run side by side. */
export async function closeLocks(): Promise<void> {
  await Promise.all(opened.splice(0).map((locks) => locks.close({ drain: 0 })));
}

/** A claim of a process that dies right after it: no engine renews, releases or withdraws it. */
export function claimOf(name: string, ttlMs: number): Claim {
  return claimBy(`default/${name}`, `dead-${names++}`, { ttlMs, queue: false });
}

export async function listed(locks: Locks, prefix: string): Promise<readonly KeyInfo[]> {
  const all: KeyInfo[] = [];
  for await (const info of locks.list({ prefix })) all.push(info);
  return all;
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/**
 * Longer than two estimates of the store's time differ, on a busy machine too. Tokens after a deleted record are higher
 * only then, and one process takes over from another with one call (docs/moving/README.md, Tokens).
 */
export function estimatesAgree(): Promise<void> {
  return pause(500);
}

/** Asks until it is true; what it took. */
export async function until(what: string, ask: () => Promise<boolean>, withinMs: number): Promise<number> {
  const from = performance.now();
  while (performance.now() - from < withinMs) {
    if (await ask()) return performance.now() - from;
    await pause(25);
  }
  throw new Error(`${what}: not within ${withinMs} ms`);
}

export function clientOf(endpoint: string): DynamoDB {
  return new DynamoDB({
    endpoint,
    region: 'eu-central-1',
    credentials: { accessKeyId: 'holdfast', secretAccessKey: 'holdfast' },
  });
}

/** Until the client knows DynamoDB's time well: its header has whole seconds. */
export async function learnTime(store: Store): Promise<void> {
  const until = performance.now() + 1_300;
  while (performance.now() < until) {
    await store.read('default/nobody');
    await pause(10);
  }
}

/** A table of the layout's shape, and a client that knows DynamoDB's time well. */
export async function openTable(endpoint: string, layout: DynamodbLayout) {
  const client = clientOf(endpoint);
  const table = `${layout.name}-${randomUUID()}`;
  await createTable(client, { table, layout });
  await leaveRecordsAlone(client, table);
  const store = () => dynamodbStore(client, { table, layout });
  await learnTime(store());
  const url = `dynamodb://holdfast:holdfast@eu-central-1/${table}?layout=${layout.name}&endpoint=${endpoint}`;
  return { client, table, store, url };
}

/**
 * DynamoDB Local deletes what is over by the table's time to live within seconds, and by its own clock: also a record
 * whose writer, with a clock that is behind, still takes it for its own. Amazon's service takes far longer.
 */
async function leaveRecordsAlone(client: DynamoDB, table: string): Promise<void> {
  const { TimeToLiveDescription: known } = await client.describeTimeToLive({ TableName: table });
  if (!known?.AttributeName) return;
  const TimeToLiveSpecification = { AttributeName: known.AttributeName, Enabled: false };
  await client.updateTimeToLive({ TableName: table, TimeToLiveSpecification });
}

/** The calls that a client makes from now on, attempt by attempt. */
export function countCalls(client: DynamoDB): string[] {
  const calls: string[] = [];
  client.middlewareStack.add(
    (next, context) => (args) => {
      calls.push(String(context.commandName).replace('Command', ''));
      return next(args);
    },
    { step: 'finalizeRequest', priority: 'low' },
  );
  return calls;
}
