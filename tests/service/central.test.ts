import { DynamoDB } from '@aws-sdk/client-dynamodb';
import { createTable } from 'holdfast/dynamodb';
import { available, startDynamodb } from 'holdfast-servers';
import { expect, it } from 'vitest';
import { until, usePlace } from '../cli/holdfast.js';

const place = usePlace();
const CREDENTIALS = { accessKeyId: 'test', secretAccessKey: 's3cret' };

it.runIf(available('dynamodb'))(
  'the environment of LockServiceCentral on DynamoDB starts the service on the same table, with the same records',
  { timeout: 120_000 },
  async () => {
    const dynamodb = await startDynamodb();
    const client = new DynamoDB({ endpoint: dynamodb.url, region: 'us-east-1', credentials: CREDENTIALS });
    const table = `central-${process.pid}`;
    await createTable(client, { table, layout: 'lock-service-central' });
    const running = place.start(['serve', '--port', '0'], {
      HOLDFAST_STORE: '',
      SPRING_PROFILES_ACTIVE: 'dynamodb',
      LOCKER_DYNAMODB_REGION: 'us-east-1',
      LOCKER_DYNAMODB_TABLENAME: table,
      LOCKER_DYNAMODB_ENDPOINT: dynamodb.url,
      LOCKER_DYNAMODB_ACCESSKEYID: CREDENTIALS.accessKeyId,
      LOCKER_DYNAMODB_SECRETACCESSKEY: CREDENTIALS.secretAccessKey,
      AUTHENTICATION_DISABLED: 'true',
    });
    let said = '';
    running.child.stderr?.on('data', (text) => {
      said += text;
    });
    const [, url] = await until(
      () => /holdfast: (http:\S+)/.exec(said),
      () => `the address, in: ${said}`,
    );
    const answer = await fetch(`${url}/v1/billing/lock/invoice-run/acquire`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ instanceId: 'one', leaseDuration: 60 }),
    });
    expect([answer.status, await answer.json()]).toMatchObject([200, { success: true, leaseDuration: 60 }]);
    const { Item } = await client.getItem({
      TableName: table,
      Key: { lockId: { S: 'billing:invoice-run' } },
    });
    expect(Item).toMatchObject({ namespace: { S: 'billing' }, lockName: { S: 'invoice-run' } });
    expect(said).not.toContain(CREDENTIALS.secretAccessKey);
    client.destroy();
    await dynamodb.stop();
  },
);
