/** Three Redis servers as one world to break: what happens to the server happens to a majority of them. */
import { enrolMembers } from 'holdfast/quorum';
import { type ProxyTarget, type RedisServer, startRedis } from 'holdfast-test-servers';
import { Redis } from 'ioredis';
import { tcpWay, type Way } from './ways.js';
import type { Server, World } from './world.js';

const SERVERS = 3;
const MAJORITY = 2;
/** A restart loses nothing. */
const CONFIG = { appendonly: 'yes', appendfsync: 'always' };

const hostOf = (targets: readonly ProxyTarget[]): string =>
  `ports-${targets.map(({ port }) => port).join('-')}`;

export function quorumWorld(): World {
  return {
    name: 'a quorum of three Redis servers (ioredis)',
    driver: 'quorum',
    durable: true,
    startServer,
    openPlace: startServer,
    close: () => Promise.resolve(),
  };
}

async function startServer(): Promise<Server> {
  const servers = await Promise.all(
    Array.from({ length: SERVERS }, () => startRedis({ own: true, config: CONFIG })),
  );
  const enrol = async (): Promise<void> => {
    const clients = servers.map(({ port }) => new Redis(port));
    // Restarted, they have lost nothing.
    await Promise.all(clients.map((client) => client.del('holdfast-quorum:member')));
    await enrolMembers(clients);
    for (const client of clients) client.disconnect();
  };
  await enrol();
  const majority = servers.slice(0, MAJORITY);
  const onEach = async (some: readonly RedisServer[], run: (server: RedisServer) => Promise<void>) => {
    await Promise.all(some.map(run));
  };
  return {
    url: `redis-quorum://${hostOf(servers)}:1`,
    host: hostOf(servers),
    port: 1,
    cutListeners: async () => 0,
    stop: () => onEach(servers, (server) => server.stop()),
    pause: () => onEach(majority, (server) => server.pause()),
    resume: () => onEach(servers, (server) => server.resume()),
    restart: async () => {
      await onEach(servers, (server) => server.restart());
      await enrol();
    },
    kill: () => onEach(majority, (server) => server.kill()),
  };
}

/** A way to each server: one of them, or all, go wrong in different ways at once. */
export async function quorumWay({ host }: ProxyTarget): Promise<Way> {
  const [, ...ports] = host.split('-');
  const ways = await Promise.all(ports.map((port) => tcpWay({ host: '127.0.0.1', port: Number(port) })));
  return {
    host: hostOf(ways),
    port: 1,
    disturb(random) {
      const some = random.chance(0.5) ? ways : [random.pick(ways)];
      return some.map((way) => way.disturb(random)).join('+');
    },
    pass: () => {
      for (const way of ways) way.pass();
    },
    stop: async () => {
      await Promise.all(ways.map((way) => way.stop()));
    },
  };
}
