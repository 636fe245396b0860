import { expect, test } from 'vitest';
import { InvalidArgumentError, LeaseLostError, type LockEventName, StoreError } from '../../src/index.js';
import { settle, stage, watchOf } from './stage.js';

test('an adopted lease has the same token, and is renewed from where it is now, for as long as it likes', async () => {
  const { clock, open } = stage();
  const a = open({ owner: 'first' });
  const b = open({ owner: 'second' });
  const first = await a.locks.acquire('k', { ttl: 3_000, metadata: { job: 7 }, minHold: 20 });
  await clock.advance(500);
  const adopted = await b.locks.adopt(await first.handoff());
  expect(adopted.token).toBe(first.token);
  expect([adopted.key, adopted.owner, adopted.metadata]).toEqual(['k', 'first', { job: 7 }]);
  expect(adopted.acquiredAt).toEqual(first.acquiredAt);
  expect([first.state, first.held, adopted.state, adopted.held]).toEqual(['handed-off', false, 'held', true]);
  const before = a.store.applied.length;
  await clock.advance(60_000);
  adopted.assertHeld();
  expect(a.store.applied.length).toBe(before);
  await adopted.release();
  expect(await a.locks.inspect('k')).toBeNull();
});

test('one round trip to hand off, and one to adopt', async () => {
  const { open } = stage();
  const a = open();
  const b = open();
  const lease = await a.locks.acquire('k');
  a.store.applied.length = 0;
  const text = await lease.handoff();
  expect(a.store.applied.map(({ kind }) => kind)).toEqual(['renew']);
  await b.locks.adopt(text);
  expect(b.store.applied.map(({ kind }) => kind)).toEqual(['renew']);
});

test('the adopter has a whole ttl to come, however old the lease is', async () => {
  const { clock, open } = stage();
  const a = open();
  const b = open();
  const lease = await a.locks.acquire('k', { ttl: 3_000 });
  await clock.advance(900);
  const text = await lease.handoff();
  await clock.advance(2_900);
  expect((await b.locks.adopt(text)).held).toBe(true);
});

test('the old handle is finished: it renews no more, releases nothing, and its signal stays quiet', async () => {
  const { clock, open } = stage();
  const a = open();
  const lease = await a.locks.acquire('k', { ttl: 3_000 });
  const { signal } = lease;
  const text = await lease.handoff();
  const sent = a.store.applied.length;
  await lease.release();
  await lease[Symbol.asyncDispose]();
  await a.locks.releaseAll();
  await clock.advance(2_000);
  expect(a.store.applied.length).toBe(sent);
  expect(lease.remainingMs).toBe(0);
  expect(() => lease.assertHeld()).toThrow(/was handed off/);
  await expect(lease.renew()).rejects.toThrow(LeaseLostError);
  await expect(lease.handoff()).rejects.toThrow(LeaseLostError);
  const adopted = await open().locks.adopt(text);
  await clock.advance(60_000);
  expect([adopted.held, signal.aborted]).toEqual([true, false]);
});

test('handed off in the middle of `withLock`, the work ends as it would, and the lock stays', async () => {
  const { open } = stage();
  const a = open();
  const b = open();
  const text = await a.locks.withLock('k', (lease) => lease.handoff());
  const adopted = await b.locks.adopt(text);
  expect([adopted.held, await a.locks.tryAcquire('k')]).toEqual([true, null]);
});

test('F29: those who wait in the old process contend at the store, and get the lock when the adopter lets go', async () => {
  const { clock, open } = stage();
  const a = open();
  const b = open();
  const first = await a.locks.acquire('k');
  const waiting = watchOf(a.locks.acquire('k', { wait: '1h' }));
  await settle();
  const adopted = await b.locks.adopt(await first.handoff());
  await clock.advance(5_000);
  expect(waiting.state).toBe('pending');
  await adopted.release();
  await clock.advance(1_000);
  expect(waiting.state).toBe('done');
  expect(waiting.value?.token).toBeGreaterThan(adopted.token);
});

test('F29: an adopted lease is handed over to nobody in memory, and its release goes to the store', async () => {
  const { clock, open } = stage();
  const a = open({ owner: 'same' });
  const b = open({ owner: 'same' });
  const adopted = await b.locks.adopt(await (await a.locks.acquire('k')).handoff());
  const waiting = watchOf(b.locks.acquire('k', { wait: '1h' }));
  await settle();
  const released = b.store.countOf('release');
  await adopted.release();
  await clock.advance(100);
  expect(b.store.countOf('release')).toBe(released + 1);
  expect(waiting.value?.token).toBeGreaterThan(adopted.token + 1);
});

test('a lease that came by handover keeps the token of its own turn when it is handed off', async () => {
  const { open } = stage();
  const a = open();
  const first = await a.locks.acquire('k');
  const waiting = a.locks.acquire('k');
  await settle();
  await first.release();
  const second = await waiting;
  const adopted = await open().locks.adopt(await second.handoff());
  expect(adopted.token).toBe(first.token + 1);
});

test('F27: what the old process does on the key later neither ends the adopted hold nor is ended by it', async () => {
  const { clock, open } = stage();
  const a = open();
  const b = open();
  const seats = a.locks.semaphore('k', { capacity: 2 });
  const adopted = await b.locks.adopt(await (await seats.acquire({ ttl: 3_000 })).handoff());
  for (let round = 0; round < 3; round++) await (await seats.acquire()).release();
  const later = await seats.acquire({ ttl: 3_000 });
  const waiting = watchOf(seats.acquire({ wait: '1h', ttl: 3_000 }));
  await clock.advance(10_000);
  expect([adopted.held, later.held, waiting.state]).toEqual([true, true, 'pending']);
  await adopted.release();
  await clock.advance(3_000);
  expect([later.held, waiting.state]).toEqual([true, 'done']);
});

test.each(['read', 'write'] as const)('a lease to %s is handed off like any other', async (side) => {
  const { clock, open } = stage();
  const a = open();
  const b = open();
  const lease = await a.locks.readWrite('k')[side].acquire({ ttl: 3_000 });
  const adopted = await b.locks.adopt(await lease.handoff());
  await clock.advance(10_000);
  expect(await a.locks.readWrite('k').write.tryAcquire()).toBeNull();
  expect(await a.locks.readWrite('k').read.tryAcquire()).toEqual(side === 'read' ? expect.anything() : null);
  adopted.assertHeld();
});

test('a group hands its leases off one by one, and is held no more', async () => {
  const { open } = stage();
  const a = open();
  const b = open();
  const group = await a.locks.all(['x', 'y']).acquire();
  const texts = await Promise.all(group.leases.map((lease) => lease.handoff()));
  expect(group.held).toBe(false);
  await group.release();
  const adopted = await Promise.all(texts.map((text) => b.locks.adopt(text)));
  expect(adopted.map(({ key, held }) => [key, held])).toEqual([
    ['x', true],
    ['y', true],
  ]);
});

test('not renewed by wish, it ends when it would have, whoever holds it', async () => {
  const { clock, open } = stage();
  const a = open();
  const b = open();
  const lease = await a.locks.acquire('k', { ttl: 3_000, renew: false });
  await clock.advance(1_000);
  const { expiresAt } = lease;
  const adopted = await b.locks.adopt(await lease.handoff());
  expect(adopted.expiresAt).toEqual(expiresAt);
  await clock.advance(2_000);
  expect(adopted.state).toBe('lost');
});

test('a ttl of its own counts for the adopter from then on', async () => {
  const { clock, open } = stage();
  const a = open();
  const b = open();
  const adopted = await b.locks.adopt(await (await a.locks.acquire('k', { ttl: 3_000 })).handoff(), {
    ttl: 60_000,
  });
  b.store.fate = () => 'lost';
  await clock.advance(55_000);
  expect(adopted.held).toBe(true);
});

test('F7: a handoff that nobody answers is an error of the store, and the lease stays here', async () => {
  const { clock, open } = stage();
  const a = open();
  const lease = await a.locks.acquire('k', { ttl: 30_000 });
  a.store.fate = () => 'lost';
  const handing = watchOf(lease.handoff());
  await clock.advance(3_000);
  expect(handing.error).toBeInstanceOf(StoreError);
  a.store.fate = () => 'pass';
  await clock.advance(60_000);
  expect(lease.held).toBe(true);
  await lease.release();
  expect(await a.locks.inspect('k')).toBeNull();
});

test.each(['evicted', 'released', 'closed'] as const)(
  'a lease %s meanwhile is not handed off',
  async (how) => {
    const { clock, open } = stage();
    const a = open();
    const b = open();
    const lease = await a.locks.acquire('k', { ttl: 30_000 });
    a.store.fate = ({ kind }) => (kind === 'renew' ? 'kept' : 'pass');
    if (how === 'evicted') await b.locks.evict('k');
    const handing = watchOf(lease.handoff());
    await settle();
    if (how === 'released') await lease.release();
    if (how === 'closed') await a.locks.close({ drain: 0 });
    a.store.fate = () => 'pass';
    a.store.deliver();
    await clock.advance(1_000);
    expect(handing.error).toBeInstanceOf(LeaseLostError);
    expect(lease.state).toBe(how === 'released' ? 'released' : 'lost');
    expect(await b.locks.inspect('k')).toBeNull();
  },
);

test('a handoff begun twice gives one string', async () => {
  const { clock, open } = stage();
  const a = open();
  const lease = await a.locks.acquire('k');
  const both = [watchOf(lease.handoff()), watchOf(lease.handoff())];
  await clock.advance(100);
  expect(both.map(({ state }) => state).sort()).toEqual(['done', 'failed']);
});

test.each(['expired', 'evicted', 'released'] as const)(
  'what was %s before it was adopted is lost, and stays free',
  async (how) => {
    const { clock, open } = stage();
    const a = open();
    const b = open();
    const text = await (await a.locks.acquire('k', { ttl: 3_000 })).handoff();
    if (how === 'expired') await clock.advance(3_001);
    if (how === 'evicted') await b.locks.evict('k');
    if (how === 'released') await (await b.locks.adopt(text)).release();
    await expect(b.locks.adopt(text)).rejects.toThrow(LeaseLostError);
    expect(await b.locks.tryAcquire('k')).not.toBeNull();
  },
);

test('F7: an adoption that nobody answers is an error of the store, soon, and may be tried again', async () => {
  const { clock, open } = stage();
  const a = open();
  const b = open();
  const text = await (await a.locks.acquire('k', { ttl: 30_000 })).handoff();
  b.store.fate = () => 'lost';
  const adopting = watchOf(b.locks.adopt(text));
  await clock.advance(10_000);
  expect(adopting.error).toBeInstanceOf(StoreError);
  b.store.fate = () => 'pass';
  expect((await b.locks.adopt(text)).held).toBe(true);
});

test('F4: an adoption whose answer was lost, or that was refused, is asked again by itself', async () => {
  const { clock, open } = stage();
  const a = open();
  const b = open();
  const text = await (await a.locks.acquire('k')).handoff();
  const fates = ['reply-lost', 'rejected', 'pass'] as const;
  let attempts = 0;
  b.store.fate = () => fates[attempts++] ?? 'pass';
  const adopting = watchOf(b.locks.adopt(text));
  await clock.advance(2_000);
  expect([adopting.state, adopting.value?.held, attempts]).toEqual(['done', true, 3]);
});

test('P15: an adoption answered after its own deadline is a loss, not a lease', async () => {
  const { clock, open } = stage();
  const a = open();
  const b = open();
  const text = await (await a.locks.acquire('k', { ttl: 100 })).handoff();
  b.store.fate = () => 'kept';
  const adopting = watchOf(b.locks.adopt(text));
  await settle();
  clock.pause(150);
  b.store.deliver();
  await settle();
  expect(adopting.error).toBeInstanceOf(LeaseLostError);
});

test('adopted twice in one process, the second is refused and the first goes on', async () => {
  const { open } = stage();
  const a = open();
  const b = open();
  const text = await (await a.locks.acquire('k')).handoff();
  const adopted = await b.locks.adopt(text);
  await expect(b.locks.adopt(text)).rejects.toThrow(InvalidArgumentError);
  expect(adopted.held).toBe(true);
});

test('the process that handed it off may adopt it itself, and an adopted lease may be handed off again', async () => {
  const { clock, open } = stage();
  const a = open();
  const b = open();
  const first = await a.locks.acquire('k', { ttl: 3_000 });
  const second = await b.locks.adopt(await first.handoff());
  const third = await a.locks.adopt(await second.handoff());
  await clock.advance(10_000);
  expect([first, second, third].map(({ state }) => state)).toEqual(['handed-off', 'handed-off', 'held']);
  expect(new Set([first.token, second.token, third.token]).size).toBe(1);
});

test('an evicted adopter learns of it with its next renewal', async () => {
  const { clock, open } = stage();
  const a = open();
  const b = open();
  const adopted = await b.locks.adopt(await (await a.locks.acquire('k', { ttl: 3_000 })).handoff());
  await a.locks.evict('k');
  await clock.advance(1_200);
  expect([adopted.state, adopted.signal.aborted]).toEqual(['lost', true]);
});

test('closing the locks gives back what was adopted, and refuses adoptions', async () => {
  const { open } = stage();
  const a = open();
  const b = open();
  const texts = [
    await (await a.locks.acquire('x')).handoff(),
    await (await a.locks.acquire('y')).handoff(),
  ] as const;
  await b.locks.adopt(texts[0]);
  b.store.fate = ({ kind }) => (kind === 'renew' ? 'kept' : 'pass');
  const late = watchOf(b.locks.adopt(texts[1]));
  await settle();
  const closing = b.locks.close({ drain: 0 });
  b.store.deliver();
  await closing;
  await settle();
  expect(late.error).toBeInstanceOf(InvalidArgumentError);
  await expect(b.locks.adopt(texts[1])).rejects.toThrow(/closed/);
  expect(await a.locks.inspect('x')).toBeNull();
});

test('listeners hear of both ends, and no event has the string or the hold in it', async () => {
  const { open } = stage();
  const told: [LockEventName, unknown][] = [];
  const a = open({ owner: 'me' });
  const b = open();
  for (const name of ['handed-off', 'adopted', 'released'] as const) {
    a.locks.on(name, (detail) => told.push([name, detail]));
    b.locks.on(name, (detail) => told.push([name, detail]));
  }
  const lease = await a.locks.acquire('k');
  await (await b.locks.adopt(await lease.handoff())).release();
  const { token } = lease;
  expect(told).toEqual([
    ['handed-off', { key: 'k', owner: 'me', token, heldMs: 0 }],
    ['adopted', { key: 'k', owner: 'me', token, remainingMs: expect.any(Number) }],
    ['released', { key: 'k', owner: 'me', token, heldMs: 0 }],
  ]);
});

test('a store that knows of processes is told last, and before anybody has the string; if it cannot be, the lease stays', async () => {
  const { clock, open } = stage();
  const a = open();
  const lease = await a.locks.acquire('k');
  const told: string[] = [];
  let fails = true;
  Object.assign(a.store, {
    async handOff({ number }: { number: number }) {
      told.push(`${number} after ${a.store.applied.at(-1)?.kind}, ${lease.state}`);
      if (fails) throw new Error('The file is busy.');
    },
  });
  const failing = watchOf(lease.handoff());
  await clock.advance(10_000);
  expect(failing.error).toBeInstanceOf(StoreError);
  expect(lease.held).toBe(true);
  expect(new Set(told)).toEqual(new Set(['1 after renew, held']));
  const handing = watchOf(lease.handoff());
  await clock.advance(200);
  expect(handing.state).toBe('pending');
  fails = false;
  await clock.advance(200);
  expect(handing.state).toBe('done');
});

test('nothing is renewed while the store is being told: it would think that this process goes on', async () => {
  const { clock, open } = stage();
  const a = open();
  const lease = await a.locks.acquire('k', { ttl: 3_000 });
  Object.assign(a.store, { handOff: () => new Promise(() => undefined) });
  const handing = watchOf(lease.handoff());
  await settle();
  const renewals = a.store.countOf('renew');
  await clock.advance(2_500);
  expect([handing.state, lease.held, a.store.countOf('renew')]).toEqual(['pending', true, renewals]);
  await clock.advance(1_000);
  expect(lease.state).toBe('lost');
});
