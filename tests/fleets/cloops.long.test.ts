import { connect, type NatsConnection } from '@nats-io/transport-node';
import { createLocks, UnsupportedError } from 'holdfast';
import { createBucket, natsStore } from 'holdfast/nats';
import { cloops } from 'holdfast/nats/layouts';
import { available, type NatsServer, startNats } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exclusionCases } from './cases-exclusion.js';
import { plainCases } from './cases-plain.js';
import { processCases } from './cases-process.js';
import { raceCase } from './cases-race.js';
import { closeLocks, type Fleet, freshName, listed, locksOf, pause } from './fleet.js';
import { Cloops } from './foreign-cloops.js';

const BUCKET = 'locks';

interface Stored {
  readonly seq: number;
  readonly text: string;
  readonly document: { owner?: string; expiresAtUnixMs?: number | string; holdfast?: object } | null;
}

describe.runIf(available('nats'))('a fleet on the layout cloops', () => {
  let server: NatsServer;
  let connection: NatsConnection;
  let fleet: Fleet;

  beforeAll(async () => {
    server = await startNats();
    connection = await connect({ servers: server.url });
    await createBucket(connection, { layout: cloops });
    fleet = {
      layout: cloops,
      url: `${server.url}/${BUCKET}?layout=cloops`,
      store: () => natsStore(connection, { layout: cloops }),
      foreign: (clock) => new Cloops(connection, BUCKET, clock && { clock }),
      record: async (name) => {
        const stored = await storedUnder(name);
        return stored?.document ? stored : null;
      },
      forget: async (name) => void (await askApi(`STREAM.PURGE.KV_${BUCKET}`, { filter: subjectOf(name) })),
      clocksApartMs: 900,
      afterForeignMs: 1_500,
      afterOursMs: 1_500,
    };
  });

  afterAll(async () => {
    await closeLocks();
    await connection.close();
    await server.stop();
  });

  const subjectOf = (name: string) => `$KV.${BUCKET}.${name}`;

  async function askApi(subject: string, question: object) {
    const reply = await connection.request(`$JS.API.${subject}`, JSON.stringify(question));
    return reply.json<{ message?: { seq: number; data?: string; hdrs?: string } }>();
  }

  /** A deletion marker has no document, as cloops sees it. */
  async function storedUnder(name: string): Promise<Stored | null> {
    const { message } = await askApi(`STREAM.MSG.GET.KV_${BUCKET}`, { last_by_subj: subjectOf(name) });
    if (!message) return null;
    const isMarker = Buffer.from(message.hdrs ?? '', 'base64')
      .toString()
      .includes('KV-Operation');
    const text = Buffer.from(message.data ?? '', 'base64').toString();
    return { seq: message.seq, text, document: isMarker ? null : JSON.parse(text) };
  }

  // The longest first: they run side by side.
  processCases(() => fleet);
  exclusionCases(() => fleet, { heartbeats: 1 });
  plainCases(() => fleet);
  raceCase(() => fleet);

  it('writes what cloops reads, and leaves a deletion marker as cloops does', async () => {
    const name = freshName();
    const locks = locksOf(fleet, { owner: 'our-worker' });
    const lease = await locks.acquire(name, { ttl: '20s' });
    const held = await storedUnder(name);
    expect(held?.document?.owner).toBe('our-worker');
    expect(held?.document?.expiresAtUnixMs).toBeGreaterThanOrEqual(lease.expiresAt.getTime() + 1_000);
    await lease.release();
    const marker = await storedUnder(name);
    expect(marker?.document).toBeNull();
    // Clients that do not look at markers read a lock that is over.
    expect(JSON.parse(marker?.text ?? '')).toMatchObject({ expiresAtUnixMs: 0 });
    const next = await locks.acquire(name);
    expect(next.token).toBeGreaterThan(lease.token);
  });

  it('reads times as numbers and as texts', async () => {
    const locks = locksOf(fleet);
    for (const numbersAsText of [false, true]) {
      const name = freshName();
      const lock = await new Cloops(connection, BUCKET, { numbersAsText }).acquire(name, 'they', 20_000);
      const until = Number((await storedUnder(name))?.document?.expiresAtUnixMs);
      expect((await locks.inspect(name))?.holders[0]?.expiresAt.getTime()).toBe(until + 1_000);
      expect(await locks.tryAcquire(name)).toBeNull();
      await lock?.release();
      await (await locks.acquire(name)).release();
    }
  });

  it('F24: cloops renews once and then never, and cannot release: its lock ends by its time', async () => {
    const name = freshName();
    const locks = locksOf(fleet);
    const lock = await fleet.foreign().acquire(name, 'their-worker', 1_000);
    expect(await lock?.heartbeat(1_500)).toBe(true);
    expect(await lock?.heartbeat(1_500)).toBe(false);
    expect(await lock?.release()).toBe(true);
    expect(await locks.tryAcquire(name)).toBeNull();
    const lease = await locks.acquire(name, { wait: '10s' });
    await lease.release();
  });

  it('never moves the revision that cloops goes by, so its one renewal and its release still work', async () => {
    const name = freshName();
    const locks = locksOf(fleet);
    const renewed = await fleet.foreign().acquire(name, 'their-worker', 20_000);
    const { seq } = (await storedUnder(name)) ?? {};
    for (let look = 0; look < 5; look++) expect(await locks.tryAcquire(name)).toBeNull();
    await pause(100);
    expect((await storedUnder(name))?.seq).toBe(seq);
    expect(await renewed?.heartbeat(20_000)).toBe(true);
  });

  it('F17: names that NATS cannot hold are refused, and so are namespaces', async () => {
    const locks = locksOf(fleet);
    for (const name of ['job:123', 'a b', '.a', 'a.', 'a..b', 'größe', '*', 'a.>', '=clock']) {
      await expect(locks.tryAcquire(name)).rejects.toThrow(UnsupportedError);
    }
    await expect(locksOf(fleet, { namespace: 'billing' }).tryAcquire('job')).rejects.toThrow('no namespaces');
    await (await locks.acquire('cljps.scheduling/eu_1=a')).release();
  });

  it('the permissions on the page are enough', async () => {
    const publish = '["$JS.API.STREAM.INFO.KV_locks", "$JS.API.STREAM.MSG.GET.KV_locks", "$KV.locks.>"]';
    const users = [
      '{ user: admin, password: admin }',
      `{ user: us, password: us, permissions: { publish: ${publish}, subscribe: "_INBOX.>" } }`,
    ];
    const authorization = `{ users: [${users.join(', ')}] }`;
    const guarded = await startNats({ config: { authorization, no_auth_user: 'admin' } });
    const { host, port } = guarded;
    const admin = await connect({ servers: `${host}:${port}` });
    await createBucket(admin, { layout: cloops });
    const us = await connect({ servers: `${host}:${port}`, user: 'us', pass: 'us' });
    const locks = createLocks(natsStore(us, { layout: cloops }));
    const lease = await locks.acquire('job');
    await lease.renew();
    expect(await listed(locks, '')).toHaveLength(1);
    await lease.release();
    await locks.close({ drain: 0 });
    await Promise.all([us.close(), admin.close()]);
    await guarded.stop();
  });

  it('leaves alone what is no lock', async () => {
    const name = freshName();
    const locks = locksOf(fleet);
    await connection.request(subjectOf(name), 'not JSON');
    await expect(locks.tryAcquire(name)).rejects.toThrow('a value that is not a lock');
    const { message } = await askApi(`STREAM.MSG.GET.KV_${BUCKET}`, { last_by_subj: subjectOf(name) });
    expect(Buffer.from(message?.data ?? '', 'base64').toString()).toBe('not JSON');
    expect(await listed(locks, name)).toEqual([]);
  });
});
