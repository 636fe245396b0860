/** Holdfast, its service under `/v1`, and LockServiceCentral on the same records: one identity at both services. */
import { LeaseLostError, UnsupportedError } from 'holdfast';
import type { InstanceLocks, Store } from 'holdfast/protocol';
import { createService, type Service } from 'holdfast-service';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { CentralFleet } from './central-fleet.js';
import { freshName, listed, locksOf } from './fleet.js';

export const OWNER = 'anonymous';
export const INSTANCE = 'instance-one';
const OTHER = 'instance-two';
export const WHO = { owner: OWNER, instanceId: INSTANCE };

interface Body {
  readonly success?: boolean;
  readonly owner?: string;
  readonly leaseDuration?: number;
  readonly expiry?: number;
}

/** `store`: that of the service. Returns calls of it, for cases of one engine. */
export function centralCases(open: () => CentralFleet, store: () => Store = () => open().store()) {
  let service: Service;
  let url: string;

  beforeAll(async () => {
    service = createService({ store: store() });
    url = await service.listen();
  });

  afterAll(() => service?.close());

  async function say(verb: string, name: string, leaseDuration?: number, instanceId = INSTANCE) {
    const answer = await fetch(`${url}/v1/default/lock/${name}/${verb}`, {
      method: 'POST',
      body: JSON.stringify({ instanceId, leaseDuration }),
    });
    return { status: answer.status, ...((await answer.json()) as Body) };
  }

  async function look(name: string): Promise<Body> {
    return (await (await fetch(`${url}/v1/default/lock/${name}`)).json()) as Body;
  }

  it('writes what the service reads: whole seconds rounded up, and a secret instance', async () => {
    const fleet = open();
    const name = freshName();
    const locks = locksOf(fleet, { owner: 'our-worker' });
    const lease = await locks.acquire(name, { ttl: 1_500 });
    const held = await fleet.stored(name);
    expect(held).toMatchObject({ owner: 'our-worker', leaseDuration: 2 });
    expect((held?.expiry ?? 0) * 1_000).toBeGreaterThanOrEqual(lease.expiresAt.getTime());
    expect(held?.instanceId).toMatch(/^holdfast-[0-9a-f]{40}$/);
    expect(await fleet.foreign().acquire(name, 'our-worker', 5_000)).toBeNull();
    await lease.release();
    expect((await fleet.stored(name))?.expiry).toBeLessThan(Date.now() / 1_000 - 3_600);
    expect(await fleet.foreign().acquire(name, 'their-worker', 60_000)).not.toBeNull();
    expect(await locks.tryAcquire(name)).toBeNull();
  });

  it('what the service changes in a record of ours counts', async () => {
    const fleet = open();
    const name = freshName();
    const locks = locksOf(fleet, { owner: 'our-worker' });
    const lease = await locks.acquire(name);
    const { instanceId } = (await fleet.stored(name)) ?? {};
    const lock = fleet.foreign().lockOf(name, 'our-worker', String(instanceId));
    expect(await lock.heartbeat(60_000)).toBe(true);
    await expect(lease.renew()).rejects.toThrow(LeaseLostError);
    await lease.release();
    expect(await locks.tryAcquire(name)).toBeNull();
    expect(await lock.release()).toBe(true);
    await (await locks.acquire(name)).release();
  });

  it('odd records: expiries beyond every clock, fields that are missing, and names that no lock has', async () => {
    const fleet = open();
    const locks = locksOf(fleet);
    const theirs = fleet.foreign();
    for (const expiry of [9_007_199_254_740_991, 8_640_000_000_000, 99_999_999_999]) {
      const name = freshName();
      await theirs.acquire(name, 'somebody', 60_000);
      await fleet.edit(name, { expiry, leaseDuration: -1 });
      const before = await fleet.record(name);
      expect(await locks.tryAcquire(name)).toBeNull();
      expect(Number.isNaN((await locks.inspect(name))?.holders[0]?.expiresAt.getTime())).toBe(false);
      expect((await say('acquire', name, 10)).status).toBe(423);
      expect(await fleet.record(name)).toEqual(before);
    }
    const past = freshName();
    await theirs.acquire(past, 'somebody', 60_000);
    await fleet.edit(past, { expiry: -9_007_199_254_740_991 });
    await (await locks.acquire(past)).release();
    for (const name of ['job:123', 'ab', 'a b c', 'x'.repeat(65), 'größe']) {
      await expect(locks.tryAcquire(name)).rejects.toThrow(UnsupportedError);
    }
  });

  it('a lock acquired there is renewed, acquired again and released here', async () => {
    const fleet = open();
    const name = freshName();
    const theirs = fleet.foreign();
    await theirs.acquire(name, OWNER, 60_000, INSTANCE);
    const { expiry = 0 } = (await fleet.stored(name)) ?? {};
    expect(await look(name)).toMatchObject({ owner: OWNER, expiry });
    const renewed = { leaseDuration: 90, expiry: expiry + 30 };
    expect(await say('renew', name, 30)).toMatchObject({ status: 200, ...renewed });
    expect(await fleet.stored(name)).toMatchObject(renewed);
    expect(await say('acquire', name, 20)).toMatchObject({ status: 200, leaseDuration: 20 });
    expect(await say('release', name)).toMatchObject({ status: 200, success: true });
    expect(await look(name)).not.toHaveProperty('owner');
    expect(await theirs.acquire(name, 'somebody', 60_000)).not.toBeNull();
    expect((await say('acquire', name, 20)).status).toBe(423);
  });

  it('a lock acquired here is renewed, acquired again and released there', async () => {
    const fleet = open();
    const name = freshName();
    const theirs = fleet.foreign();
    expect(await say('acquire', name, 60)).toMatchObject({ status: 200, leaseDuration: 60 });
    const lock = theirs.lockOf(name, OWNER, INSTANCE);
    expect(await lock.heartbeat(30_000)).toBe(true);
    const renewed = await fleet.stored(name);
    expect(renewed).toMatchObject({ owner: OWNER, instanceId: INSTANCE, leaseDuration: 90 });
    expect(await say('renew', name, 10)).toMatchObject({
      status: 200,
      leaseDuration: 100,
      expiry: (renewed?.expiry ?? 0) + 10,
    });
    expect(await theirs.acquire(name, OWNER, 20_000, INSTANCE)).not.toBeNull();
    expect(await say('renew', name, 10)).toMatchObject({ status: 200, leaseDuration: 30 });
    expect(await lock.release()).toBe(true);
    expect((await say('renew', name, 10)).status).toBe(423);
    expect((await say('release', name)).status).toBe(200);
  });

  it('another instance or another owner gets nothing, at either service', async () => {
    const fleet = open();
    const name = freshName();
    const theirs = fleet.foreign();
    await say('acquire', name, 60);
    expect((await say('acquire', name, 60, OTHER)).status).toBe(423);
    expect((await say('renew', name, 60, OTHER)).status).toBe(423);
    expect((await say('release', name, undefined, OTHER)).status).toBe(423);
    expect(await theirs.acquire(name, OWNER, 60_000, OTHER)).toBeNull();
    expect(await theirs.acquire(name, 'somebody', 60_000, INSTANCE)).toBeNull();
    expect(await theirs.lockOf(name, 'somebody', INSTANCE).release()).toBe(false);
    expect(await locksOf(fleet).tryAcquire(name)).toBeNull();
    expect((await look(name)).owner).toBe(OWNER);
    expect(await listed(locksOf(fleet), name)).toMatchObject([{ key: name, holders: [{ owner: OWNER }] }]);
  });

  it('the library is kept out and let in, and tokens rise through locks of /v1', async () => {
    const name = freshName();
    const locks = locksOf(open());
    const first = await locks.acquire(name);
    expect((await say('acquire', name, 60)).status).toBe(423);
    await first.release();
    expect((await say('acquire', name, 60)).status).toBe(200);
    const [held] = (await locks.inspect(name))?.holders ?? [];
    expect(held?.token).toBeGreaterThan(first.token);
    expect((await say('renew', name, 5)).status).toBe(200);
    expect((await locks.inspect(name))?.holders[0]?.token).toBe(held?.token);
    expect(await locks.tryAcquire(name)).toBeNull();
    await say('release', name);
    const second = await locks.acquire(name);
    expect(second.token).toBeGreaterThan(held?.token ?? Number.NaN);
    await second.release();
  });

  it('an eviction ends a lock of /v1, and the same eviction again ends nobody new', async () => {
    const name = freshName();
    const locks = locksOf(open());
    await say('acquire', name, 60);
    const token = (await locks.inspect(name))?.holders[0]?.token ?? Number.NaN;
    expect(await locks.evict(name, { upToToken: token })).toBe(1);
    expect((await say('renew', name, 10)).status).toBe(423);
    await say('acquire', name, 60, OTHER);
    expect(await locks.evict(name, { upToToken: token })).toBe(0);
    expect((await say('renew', name, 10, OTHER)).status).toBe(200);
  });

  it('a lock whose expiry has passed is taken over', async () => {
    const fleet = open();
    const late = (ms: number) => fleet.foreign(() => Date.now() - ms);
    const name = freshName();
    await late(60_000).acquire(name, 'somebody', 30_000);
    expect(await look(name)).not.toHaveProperty('owner');
    expect((await say('renew', name, 10)).status).toBe(423);
    expect((await say('release', name)).status).toBe(200);
    expect((await say('acquire', name, 10)).status).toBe(200);
  });

  it('a renewal adds no more than may be held at a time, and then changes nothing', async () => {
    const fleet = open();
    const name = freshName();
    const instances = store().instances as InstanceLocks;
    const renew = (id: string) => instances.renew(`default/${name}`, WHO, 60, 150, id);
    await say('acquire', name, 60);
    expect(await renew('one')).toMatchObject({ kind: 'renewed', lease: { leaseDuration: 120 } });
    expect(await renew('two')).toMatchObject({ kind: 'too-long' });
    expect(await fleet.stored(name)).toMatchObject({ leaseDuration: 120 });
  });

  return { say, look };
}

/** A store whose next writes wait, as long as its network does. */
export interface HeldStore {
  readonly store: Store;
  hold(): void;
  readonly arrived: Promise<void>;
  letGo(): void;
}

/** A gate for the writes of a `HeldStore`. */
export function gate() {
  let isHolding = false;
  let letGo: () => void = () => undefined;
  let arrive: () => void = () => undefined;
  const released = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const arrived = new Promise<void>((resolve) => {
    arrive = resolve;
  });
  return {
    hold: (): void => {
      isHolding = true;
    },
    arrived,
    letGo: () => letGo(),
    async pass(): Promise<void> {
      if (!isHolding) return;
      arrive();
      await released;
    },
  };
}

export function lateInstanceCase(open: () => CentralFleet, heldStore: () => HeldStore): void {
  it('F4: an acquire, a renewal or a release that is executed late, when its caller is gone, does nothing', async () => {
    const fleet = open();
    const name = freshName();
    const key = `default/${name}`;
    const { instances } = fleet.store();
    const late = [heldStore(), heldStore(), heldStore()] as const;
    await Promise.all(late.map(({ store }) => store.read(key)));
    await instances?.acquire(key, WHO, 60, 'first');
    for (const one of late) one.hold();
    const [acquire, renew, release] = late;
    const gone = Promise.allSettled([
      acquire.store.instances?.acquire(key, WHO, 600, 'late-acquire'),
      renew.store.instances?.renew(key, WHO, 600, 6_000, 'late-renewal'),
      release.store.instances?.release(key, WHO, 'late-release'),
    ]);
    await Promise.all(late.map(({ arrived }) => arrived));
    await Promise.all(late.map(({ store }) => store.close()));
    await instances?.release(key, WHO, 'second');
    await instances?.acquire(key, WHO, 60, 'third');
    const before = await fleet.record(name);
    for (const one of late) one.letGo();
    expect((await gone).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    expect(await fleet.record(name)).toEqual(before);
  });
}
