// Starts servers, says their process ids, and goes on until it is killed, or ends without stopping them.
import { startPostgres, startRedis } from 'holdfast-servers';

const how = process.argv[2];
const [redis, postgres] = await Promise.all([startRedis({ own: true }), startPostgres({ own: true })]);
if (how === 'pause') await Promise.all([redis.pause(), postgres.pause()]);
process.stdout.write(`${JSON.stringify([redis.pid, postgres.pid])}\n`);
if (how !== 'leave') setInterval(() => undefined, 1000);
