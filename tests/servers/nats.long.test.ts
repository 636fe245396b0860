import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import {
  available,
  type NatsCluster,
  type NatsOptions,
  type NatsServer,
  startNats,
  startNatsCluster,
} from 'holdfast-test-servers';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { atTheEnd, clearScene } from '../scene.js';
import { accepts, expectGone, isAlive, itIsLikeAllServers, within } from './processes.js';

afterEach(async () => {
  await clearScene();
  vi.unstubAllEnvs();
});

async function start(options: NatsOptions = {}): Promise<NatsServer> {
  const server = await startNats({ own: true, ...options });
  atTheEnd(() => server.stop());
  return server;
}

async function open(servers: string | readonly string[]): Promise<NatsConnection> {
  const connection = await connect({ servers: [servers].flat(), reconnectTimeWait: 50, timeout: 5000 });
  atTheEnd(() => connection.close());
  return connection;
}

async function makeStream(connection: NatsConnection, replicas = 1): Promise<void> {
  const manager = await jetstreamManager(connection);
  await manager.streams.add({ name: 'words', subjects: ['words.>'], num_replicas: replicas });
}

const say = async (connection: NatsConnection, word: string): Promise<number> =>
  (await jetstream(connection).publish(`words.${word}`, word, { timeout: 2000 })).seq;

const countOf = async (connection: NatsConnection): Promise<number> =>
  (await (await jetstreamManager(connection)).streams.info('words')).state.messages;

describe.runIf(available('nats', { own: true }))('a private NATS', () => {
  it('has JetStream, and is gone after stop, which may be called twice', async () => {
    const server = await start();
    const connection = await open(server.url);
    await makeStream(connection);
    expect(await say(connection, 'one')).toBe(1);
    expect(isAlive(server.pid)).toBe(true);
    await connection.close();
    await server.stop();
    await server.stop();
    await expectGone(server.pid);
    expect(await accepts(server)).toBe(false);
    await expect(server.restart()).rejects.toThrow('was stopped');
  });

  it('restarts on its port as another process with its streams, also after a kill', async () => {
    const server = await start();
    const { pid } = server;
    const before = await open(server.url);
    await makeStream(before);
    await say(before, 'one');
    await before.close();
    await server.restart();
    expect(server.pid).not.toBe(pid);
    const between = await open(server.url);
    await say(between, 'two');
    await between.close();
    await server.kill();
    expect(await accepts(server)).toBe(false);
    await server.restart();
    expect(await countOf(await open(server.url))).toBe(2);
  });

  it('takes lines of configuration, and lets in nobody but the user it was given', async () => {
    const login = { user: 'ali', password: 'open: sesame' };
    const server = await start({ login, config: { max_payload: '2048' } });
    const { username, password } = new URL(server.url);
    const [user, pass] = [username, password].map(decodeURIComponent);
    const servers = `${server.host}:${server.port}`;
    const connection = await connect({ servers, user: user ?? '', pass: pass ?? '' });
    atTheEnd(() => connection.close());
    expect(connection.info?.max_payload).toBe(2048);
    await expect(connect({ servers, reconnect: false })).rejects.toThrow(/authorization/i);
  });

  it('answers nothing while it is paused, and everything afterwards', async () => {
    const server = await start();
    const connection = await open(server.url);
    await server.pause();
    const reply = connection.rtt();
    expect(await within(300, reply)).toBe('no answer');
    await server.resume();
    expect(await reply).toBeGreaterThanOrEqual(300);
  });

  itIsLikeAllServers(start);
});

describe.runIf(available('nats', { own: true }))('a NATS that the user named', () => {
  it('is used as it is, and not ours to stop', async () => {
    const theirs = await start();
    vi.stubEnv('HOLDFAST_TEST_NATS_URL', theirs.url);
    const server = await startNats();
    expect(server).toMatchObject({ url: theirs.url, host: theirs.host, port: theirs.port });
    await server.stop();
    await expect(server.kill()).rejects.toThrow('HOLDFAST_TEST_NATS_URL');
    expect(await (await open(theirs.url)).rtt()).toBeGreaterThanOrEqual(0);
    expect((await start()).port).not.toBe(theirs.port);
  });

  it('a binary that a variable names has to be there', () => {
    vi.stubEnv('HOLDFAST_NATS_SERVER', 'no-such-nats-server');
    expect(() => available('nats', { own: true })).toThrow('HOLDFAST_NATS_SERVER names no-such-nats-server');
  });
});

describe.runIf(available('nats', { own: true }))('a NATS cluster', () => {
  async function startCluster(): Promise<NatsCluster> {
    const cluster = await startNatsCluster();
    atTheEnd(() => cluster.stop());
    return cluster;
  }

  it('holds three replicas, loses its leader, goes on with the other two, and is whole again', async () => {
    const cluster = await startCluster();
    const connection = await open(cluster.urls);
    await makeStream(connection, 3);
    await say(connection, 'one');
    const manager = await jetstreamManager(connection);
    const { cluster: state } = await manager.streams.info('words');
    expect(state?.replicas).toHaveLength(2);
    const leader = cluster.nodes.find(({ name }) => name === state?.leader);
    await leader?.kill();
    await vi.waitFor(() => say(connection, 'two'), { timeout: 60_000, interval: 200 });
    await leader?.restart();
    await cluster.settle();
    // A client of the paused one would wait for it: its connection stays.
    const stranger = cluster.nodes.find(({ name }) => name !== connection.info?.server_name);
    await stranger?.pause();
    const third = await vi.waitFor(() => say(connection, 'three'), { timeout: 60_000, interval: 200 });
    // Not counted by asking: the paused one may be the leader of all that is not a stream.
    expect(third).toBeGreaterThanOrEqual(3);
    await connection.close();
    await cluster.stop();
    for (const { pid } of cluster.nodes) await expectGone(pid);
  }, 240_000);

  it('starts again after all of its nodes were killed', async () => {
    const cluster = await startCluster();
    const connection = await open(cluster.urls);
    await makeStream(connection, 3);
    await say(connection, 'one');
    await connection.close();
    for (const node of cluster.nodes) await node.kill();
    for (const node of cluster.nodes) await node.restart();
    await cluster.settle();
    const again = await open(cluster.urls);
    await vi.waitFor(async () => expect(await countOf(again)).toBe(1), { timeout: 60_000, interval: 200 });
  }, 90_000);
});
