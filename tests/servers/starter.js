// Starts servers, says their process ids, and goes on until it is killed, or ends without stopping them.
import { startDynamodb, startNats, startPostgres, startRedis } from 'holdfast-test-servers';

const START = { redis: startRedis, postgres: startPostgres, nats: startNats, dynamodb: startDynamodb };
const how = process.argv[2];
const names = /** @type {(keyof typeof START)[]} */ (process.argv.slice(3));
const servers = await Promise.all(names.map((name) => START[name]({ own: true })));
if (how === 'pause') await Promise.all(servers.map((server) => server.pause()));
process.stdout.write(`${JSON.stringify(servers.map(({ pid }) => pid))}\n`);
if (how !== 'leave') setInterval(() => undefined, 1000);
