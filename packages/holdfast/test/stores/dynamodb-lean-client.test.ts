/** The client behind dynamodb:// URLs, against a server that answers what a test wants. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { LeanClient } from '../../src/stores/dynamodb/lean-client.js';

interface Received {
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

type Respond = (response: ServerResponse, received: Received) => void;

const servers: Server[] = [];
const clients: LeanClient[] = [];

afterEach(() => {
  for (const client of clients.splice(0)) client.destroy();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function clientOn(
  respond: Respond,
  secrets = ['first'],
  host = '127.0.0.1',
): Promise<{ client: LeanClient; received: Received[] }> {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      const one = { headers: request.headers, body };
      received.push(one);
      respond(response, one);
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const { port } = server.address() as AddressInfo;
  const place = {
    endpoint: new URL(`http://${host.includes(':') ? `[${host}]` : host}:${port}`),
    region: 'eu-west-1',
  };
  const client = new LeanClient({
    place: async () => place,
    credentials: async () => ({
      accessKeyId: 'KEY',
      secretAccessKey: 'secret',
      sessionToken: secrets.length > 1 ? (secrets.shift() ?? '') : (secrets[0] ?? ''),
    }),
    requestMs: 300,
    connectionsMax: 8,
  });
  clients.push(client);
  return { client, received };
}

const signedAt = ({ headers }: Received): number => {
  const [, year, month, day, hour, minute, second] =
    /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(String(headers['x-amz-date'])) ?? [];
  return Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
};

test('sends one signed call, and gives its answer', async () => {
  const { client, received } = await clientOn((response) => response.end('{"Item":{"key":{"S":"ä"}}}'));
  const input = { TableName: 'locks', Key: { key: { S: 'ä' } } };
  expect(await client.getItem(input as never)).toEqual({ Item: { key: { S: 'ä' } } });
  expect(received).toHaveLength(1);
  expect(received[0]?.body).toBe(JSON.stringify(input));
  expect(received[0]?.headers).toMatchObject({
    'x-amz-target': 'DynamoDB_20120810.GetItem',
    'x-amz-security-token': 'first',
    authorization: expect.stringMatching(
      /^AWS4-HMAC-SHA256 Credential=KEY\/\d{8}\/eu-west-1\/dynamodb\/aws4_request, /,
    ),
  });
});

test('a refusal is an error named by its type, with the item that made the condition fail', async () => {
  const { client } = await clientOn((response) => {
    response.statusCode = 400;
    response.end(
      '{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"The conditional request failed","Item":{"token":{"N":"7"}}}',
    );
  });
  await expect(client.updateItem({} as never)).rejects.toMatchObject({
    name: 'ConditionalCheckFailedException',
    message: 'The conditional request failed',
    Item: { token: { N: '7' } },
    $metadata: { attempts: 1, httpStatusCode: 400 },
  });
});

test('what a proxy says in its own words is no answer of DynamoDB', async () => {
  const { client } = await clientOn((response) => {
    response.statusCode = 502;
    response.end('<html>Bad gateway</html>');
  });
  await expect(client.getItem({} as never)).rejects.toThrow('DynamoDB answered with status 502.');
});

test('does not wait for ever for an answer', async () => {
  const { client } = await clientOn(() => undefined);
  await expect(client.getItem({} as never)).rejects.toMatchObject({ code: 'SILENT' });
});

test('asks for credentials before every call: those of a role are replaced while it runs', async () => {
  const { client, received } = await clientOn((response) => response.end('{}'), ['first', 'second']);
  await client.getItem({} as never);
  await client.getItem({} as never);
  expect(received.map(({ headers }) => headers['x-amz-security-token'])).toEqual(['first', 'second']);
});

test("F11: signs by the server's clock where this machine's is too far off, which AWS would refuse", async () => {
  const hourMs = 3_600_000;
  const { client, received } = await clientOn((response) => {
    response.setHeader('date', new Date(Date.now() - hourMs).toUTCString());
    response.end('{}');
  });
  await client.getItem({} as never);
  await client.getItem({} as never);
  const [before, after] = received;
  if (!before || !after) throw new Error('Two calls were made.');
  expect(Math.abs(signedAt(before) - Date.now())).toBeLessThan(hourMs / 2);
  expect(Math.abs(signedAt(after) - (Date.now() - hourMs))).toBeLessThan(hourMs / 2);
});

test('a call that was given up, or comes after the end, is not sent', async () => {
  const { client, received } = await clientOn((response) => response.end('{}'));
  const abortSignal = AbortSignal.abort(new Error('given up'));
  await expect(client.updateItem({} as never, { abortSignal })).rejects.toThrow('given up');
  client.destroy();
  await expect(client.updateItem({} as never)).rejects.toThrow('closed');
  expect(received).toEqual([]);
});

test('a call that waits for a connection is given up with its signal', async () => {
  const { client } = await clientOn(() => undefined);
  const controller = new AbortController();
  const options = { abortSignal: controller.signal };
  // More than there are connections.
  const calls = Array.from({ length: 12 }, () => client.getItem({} as never, options));
  setTimeout(() => controller.abort(new Error('given up')), 50);
  const outcomes = await Promise.allSettled(calls);
  for (const outcome of outcomes) {
    expect(outcome).toMatchObject({ status: 'rejected', reason: { name: 'AbortError' } });
  }
});

test('an address of IPv6 is reached', async () => {
  const { client, received } = await clientOn((response) => response.end('{}'), ['one'], '::1');
  await client.getItem({} as never);
  expect(received[0]?.headers.host).toMatch(/^\[::1\]:\d+$/);
});
