/**
 * A private Redis on loopback. It stores nothing on disk by default. A server named in HOLDFAST_TEST_REDIS_URL is used as
 * it is: never stopped, paused or emptied.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { borrowed, givenUrl } from './borrowed.js';
import { need } from './install.js';
import { type Controls, type Plan, supervise } from './supervise.js';

export interface RedisServer extends Controls {
  readonly url: string;
}

export interface RedisOptions {
  /** Lines of redis.conf: `{ appendonly: 'yes' }`. Means a private server. */
  readonly config?: Readonly<Record<string, string>>;
  /** A private server even if a variable names one: for tests that stop, pause or kill it. */
  readonly own?: boolean;
}

const CONFIG = { bind: '127.0.0.1', save: '""', appendonly: 'no', 'repl-diskless-sync-delay': '0' };

export type Reply = string | number | null | readonly Reply[];

/** One command over its own connection, without retries. */
export async function ask(port: number, password: string | undefined, ...command: string[]): Promise<Reply> {
  const [name = '', ...args] = command;
  const client = new Redis({
    host: '127.0.0.1',
    port,
    lazyConnect: true,
    connectTimeout: 1000,
    commandTimeout: 2000,
    retryStrategy: () => null,
    ...(password === undefined ? {} : { password }),
  });
  let reason: unknown;
  client.on('error', (error) => {
    reason = error;
  });
  try {
    await client.connect();
    return (await client.call(name, ...args)) as Reply;
  } catch (error) {
    throw reason ?? error;
  } finally {
    client.disconnect();
  }
}

export function fieldOf(info: Reply, name: string): string | undefined {
  return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(String(info))?.[1];
}

/** Another Redis may listen on the port: the process id identifies this one. */
async function answers(port: number, pid: number, password: string | undefined): Promise<boolean> {
  const info = await ask(port, password, 'INFO');
  return fieldOf(info, 'process_id') === String(pid) && fieldOf(info, 'loading') !== '1';
}

/**
 * The configuration file is written once. The server rewrites it when a Sentinel changes its role, so that a restarted
 * master knows that it is a replica now.
 */
export function redisPlan(
  binary: string,
  config: Readonly<Record<string, string>>,
  mode: 'redis' | 'sentinel' = 'redis',
): Plan {
  const file = 'redis.conf';
  let written: number | undefined;
  return {
    name: mode,
    gentle: 'SIGTERM',
    launch: (port, folder) => {
      if (written !== port) {
        const lines = Object.entries({ ...config, port: String(port), dir: folder });
        writeFileSync(join(folder, file), `${lines.map(([key, value]) => `${key} ${value}`).join('\n')}\n`);
      }
      written = port;
      const args = [join(folder, file), ...(mode === 'sentinel' ? ['--sentinel'] : [])];
      return { command: binary, args, folder };
    },
    answers: (port, pid) => answers(port, pid, config.requirepass),
  };
}

export async function startPrivateRedis(config: Readonly<Record<string, string>> = {}): Promise<RedisServer> {
  const all = { ...CONFIG, ...config };
  const controls = await supervise(redisPlan(await need('redis'), all));
  const auth = config.requirepass === undefined ? '' : `:${encodeURIComponent(config.requirepass)}@`;
  return Object.assign(controls, { url: `redis://${auth}${controls.host}:${controls.port}` });
}

export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const given = givenUrl('redis');
  const own = options.own === true || options.config !== undefined;
  if (given === undefined || own) return startPrivateRedis(options.config);
  return borrowed('redis', given);
}
