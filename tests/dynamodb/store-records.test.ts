import type { AttributeValue, DynamoDB } from '@aws-sdk/client-dynamodb';
import { UnsupportedError } from 'holdfast';
import { dynamodbStore } from 'holdfast/dynamodb';
import type { Store } from 'holdfast/protocol';
import { available, type DynamodbServer, startDynamodb } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { claimOf, clientOf, itemOf, releaseOf, say, tableOn } from './store-scene.js';

describe.runIf(available('dynamodb'))('records in DynamoDB', () => {
  let server: DynamodbServer;
  let client: DynamoDB;
  let table: string;
  let store: Store;

  beforeAll(async () => {
    server = await startDynamodb();
    client = clientOf(server.url);
    table = await tableOn(client);
    store = dynamodbStore(client, { table, queue: true });
  });

  afterAll(async () => {
    client?.destroy();
    await server?.stop();
  });

  /** A free record, as a release leaves it, but for what is told. */
  async function leave(key: string, more: Record<string, AttributeValue>): Promise<void> {
    const free = { version: { N: '1' }, token: { N: '7' }, decision: { N: '7' } };
    await client.putItem({ TableName: table, Item: { key: { S: key }, ...free, ...more } });
  }

  it('have the lists only while somebody is in them, so that a guess can ask for that', async () => {
    const [first, second] = [claimOf('lists', 'anna'), claimOf('lists', 'bert')];
    await say(store, first);
    expect(Object.keys((await itemOf(client, table, 'lists')) ?? {}).sort()).toEqual(
      ['key', 'version', 'token', 'decision', 'holders', 'ttl'].sort(),
    );
    await say(store, second);
    expect(await itemOf(client, table, 'lists')).toHaveProperty('waiters');
    await say(store, releaseOf(second));
    await say(store, { ...releaseOf(first), minHoldMs: 60_000 });
    const resting = (await itemOf(client, table, 'lists')) ?? {};
    expect(Object.keys(resting)).toEqual(expect.arrayContaining(['rests', 'ended']));
    expect(Object.keys(resting)).not.toEqual(expect.arrayContaining(['holders']));
    expect(Object.keys(resting)).not.toEqual(expect.arrayContaining(['waiters']));
  });

  it('F10: with a token ahead of the clock are passed, not undercut', async () => {
    const ahead = (Date.now() + 60_000) * 1_000;
    await leave('token ahead', { token: { N: String(ahead) } });
    const granted = await say(store, claimOf('token ahead', 'anna'));
    expect(granted).toMatchObject({ kind: 'granted', token: ahead + 1 });
  });

  it('with a decision ahead of the clock are passed too: each write has a higher number', async () => {
    const ahead = (Date.now() + 60_000) * 1_000;
    await leave('decision ahead', { decision: { N: String(ahead) } });
    const granted = await say(store, claimOf('decision ahead', 'anna'));
    expect(granted).toMatchObject({ kind: 'granted', decision: ahead + 1 });
  });

  it('F27: a mark refuses the hold it names and those before it, and nobody else', async () => {
    const until = { N: String(Date.now() + 20_000) };
    const marked = { ended: { M: { anna: { M: { n: { N: '3' }, until, at: { N: '0' } } } } } };
    await leave('marked', marked);
    const fresh = dynamodbStore(client, { table });
    const number = (n: number) => claimOf('marked', 'anna', { hold: { process: 'anna', number: n } });
    expect((await say(fresh, number(3))).kind).toBe('withdrawn');
    expect((await say(dynamodbStore(client, { table }), number(2))).kind).toBe('withdrawn');
    const other = claimOf('marked', 'bert');
    expect((await say(dynamodbStore(client, { table }), other)).kind).toBe('granted');
    expect((await itemOf(client, table, 'marked'))?.ended).toEqual(marked.ended);
    await say(fresh, releaseOf(other));
    expect((await say(dynamodbStore(client, { table }), number(4))).kind).toBe('granted');
  });

  it('of a newer format are not guessed over, even when they look free', async () => {
    await leave('newer', { version: { N: '99' } });
    const before = await itemOf(client, table, 'newer');
    const [refused] = dynamodbStore(client, { table }).apply([claimOf('newer', 'anna')]);
    await expect(refused).rejects.toThrow(UnsupportedError);
    expect(await itemOf(client, table, 'newer')).toEqual(before);
  });

  it('keep the attributes that others put there', async () => {
    const claim = claimOf('annotated', 'anna');
    await leave('annotated', { note: { S: 'by hand' } });
    await say(store, claim);
    await say(store, releaseOf(claim));
    expect((await itemOf(client, table, 'annotated'))?.note).toEqual({ S: 'by hand' });
  });

  it('F17: a process named like a path, a reserved word or a placeholder is no more than a name', async () => {
    for (const process of ['a.b', 'ended', '#n0', ':v0', 'a[0]', 'ö "x"']) {
      const claim = claimOf(`named ${process}`, process);
      expect((await say(store, claim)).kind).toBe('granted');
      expect(await say(store, releaseOf(claim))).toMatchObject({ held: true });
      expect((await say(dynamodbStore(client, { table }), claim)).kind).toBe('withdrawn');
    }
  });
});
