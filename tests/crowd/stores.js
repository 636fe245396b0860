/** Stores for the clients of a crowd, as many as one process likes. */
import { openStore } from 'holdfast';

/**
 * NATS: a connection each. DynamoDB Local, by the URL of the server and the table as its path: one client of the SDK for
 * all, as loading and connecting many costs more than the calls that are to be seen.
 *
 * @param {string} url
 * @returns {Promise<() => Promise<import('holdfast').Store>>}
 */
export async function storesOn(url) {
  if (!url.startsWith('http:')) return () => openStore(url);
  const { DynamoDB } = await import('@aws-sdk/client-dynamodb');
  const { dynamodbStore } = await import('holdfast/dynamodb');
  const { origin, pathname } = new URL(url);
  const credentials = { accessKeyId: 'holdfast', secretAccessKey: 'holdfast' };
  const client = new DynamoDB({ endpoint: origin, region: 'eu-central-1', credentials });
  return async () => dynamodbStore(client, { table: pathname.slice(1), queue: true });
}
