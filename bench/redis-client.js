/**
 * The client that every Redis contender gets: ioredis with its defaults, one connection to each server. Round trips are
 * counted where the client sends: a command is one, and so is a pipeline, however many commands it carries. A command to
 * three servers at once is three.
 */
import { Redis } from 'ioredis';

let roundTrips = 0;
/** @type {unknown} */
let pipelineCounted;
/** @type {WeakSet<Redis>} */
const uncounted = new WeakSet();

const { sendCommand } = Redis.prototype;
/** @this {Redis} @param {Parameters<typeof sendCommand>} given */
Redis.prototype.sendCommand = function counted(...given) {
  const stream = given[1];
  if (!uncounted.has(this) && (!stream || stream !== pipelineCounted)) roundTrips += 1;
  pipelineCounted = stream;
  return sendCommand.apply(this, given);
};

/** @param {string} url */
export async function openRedis(url) {
  const client = new Redis(url);
  await client.ping();
  return client;
}

/** For the holder whom the waiters stand against: what it asks is not theirs. @param {string} url */
export async function openRedisApart(url) {
  const client = new Redis(url);
  uncounted.add(client);
  await client.ping();
  return client;
}

/** One of each server. @param {string} urls with commas between them */
export function openAll(urls, open = openRedis) {
  return Promise.all(urls.split(',').map((url) => open(url)));
}

export function redisRoundTrips() {
  return roundTrips;
}
