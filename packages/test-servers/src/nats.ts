/**
 * A private NATS server with JetStream on loopback. Its streams are stored in its folder and survive a restart and a kill.
 * A server named in HOLDFAST_TEST_NATS_URL is used as it is.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { borrowed, givenUrl } from './borrowed.js';
import { randomName } from './clock.js';
import { need } from './install.js';
import { type Controls, type Plan, supervise } from './supervise.js';

export interface NatsServer extends Controls {
  readonly url: string;
}

export interface NatsOptions {
  /** Lines of its configuration: `{ max_payload: '64KB' }`. Means a private server. */
  readonly config?: Readonly<Record<string, string>>;
  /** The only user that may connect; part of the URL. Means a private server. */
  readonly login?: Login;
  /** A private server even if a variable names one: for tests that stop, pause or kill it. */
  readonly own?: boolean;
}

interface Login {
  readonly user: string;
  readonly password: string;
}

export interface NatsSetup {
  readonly name: string;
  readonly config?: Readonly<Record<string, string>> | undefined;
  readonly login?: Login | undefined;
  readonly isReady: (connection: NatsConnection) => Promise<boolean>;
}

const ANSWER_MS_MAX = 2000;

/** Over its own connection to this server only, without retries. */
export async function withNats<Reply>(
  port: number,
  login: Login | undefined,
  use: (connection: NatsConnection) => Promise<Reply>,
): Promise<Reply> {
  const connection = await connect({
    servers: `127.0.0.1:${port}`,
    timeout: ANSWER_MS_MAX,
    reconnect: false,
    ignoreClusterUpdates: true,
    ...(login === undefined ? {} : { user: login.user, pass: login.password }),
  });
  try {
    return await use(connection);
  } finally {
    await connection.close();
  }
}

/** Throws JetStream's message when it refuses. */
export async function askJetstream(
  connection: NatsConnection,
  subject: string,
  request?: object,
): Promise<void> {
  const payload = request === undefined ? '' : JSON.stringify(request);
  const answer = await connection.request(`$JS.API.${subject}`, payload, { timeout: ANSWER_MS_MAX });
  const { error } = answer.json<{ error?: { description?: string } }>();
  if (error !== undefined) throw new Error(`JetStream refuses ${subject}: ${error.description}`);
}

function configuration({ name, config, login }: NatsSetup, port: number, folder: string): string {
  const lines = Object.entries({
    host: '127.0.0.1',
    port: String(port),
    server_name: name,
    jetstream: `{ store_dir: ${JSON.stringify(join(folder, 'streams'))} }`,
    ...(login && { authorization: JSON.stringify(login) }),
    ...config,
  });
  return `${lines.map(([key, value]) => `${key}: ${value}`).join('\n')}\n`;
}

/** Another NATS may listen on the port: the name identifies this one. */
export function natsPlan(binary: string, setup: NatsSetup): Plan {
  return {
    name: 'nats',
    gentle: 'SIGTERM',
    launch: (port, folder) => {
      const file = join(folder, 'nats.conf');
      writeFileSync(file, configuration(setup, port, folder));
      return { command: binary, args: ['-c', file], folder };
    },
    answers: (port) =>
      withNats(
        port,
        setup.login,
        async (connection) => connection.info?.server_name === setup.name && setup.isReady(connection),
      ),
  };
}

async function startPrivate({ config, login }: NatsOptions): Promise<NatsServer> {
  const isReady = async (connection: NatsConnection): Promise<boolean> => {
    await askJetstream(connection, 'INFO');
    return true;
  };
  const setup = { name: `nats-${randomName()}`, config, login, isReady };
  const controls = await supervise(natsPlan(await need('nats'), setup));
  const auth = login && [login.user, login.password].map(encodeURIComponent).join(':');
  return Object.assign(controls, {
    url: `nats://${auth ? `${auth}@` : ''}${controls.host}:${controls.port}`,
  });
}

export async function startNats(options: NatsOptions = {}): Promise<NatsServer> {
  const given = givenUrl('nats');
  const own = options.own === true || options.config !== undefined || options.login !== undefined;
  if (given === undefined || own) return startPrivate(options);
  return borrowed('nats', given);
}
