/** `acquire`, `renew` and `release`: one lease over several processes. */
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Ended, usePlace } from './holdfast.js';

const place = usePlace();
const file = (): string => join(place.folder, 'lease');

async function inspected(key: string) {
  return JSON.parse((await place.run(['inspect', key, '--json'])).stdout);
}

async function acquired(...args: readonly string[]): Promise<string> {
  const { status, stdout, stderr } = await place.run(['acquire', ...args]);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout.trimEnd();
}

const withLease = (handoff: string, ...args: readonly string[]): Promise<Ended> =>
  place.run(args, { HOLDFAST_HANDOFF: handoff });

describe('holdfast acquire, renew and release', () => {
  it('keep a lock over several processes, with the lease in a variable', async () => {
    const handoff = await acquired('job', '--ttl', '10m', '--owner', 'ci', '--metadata', 'build=42');
    const before = await inspected('job');
    expect(before.holders).toMatchObject([{ owner: 'ci', metadata: { build: '42' } }]);
    expect((await place.run(['run', 'job', '--wait', '0', '--', 'true'])).status).toBe(75);
    const renewed = await withLease(handoff, 'renew', '--ttl', '1h', '--json');
    expect(renewed.status).toBe(0);
    const [lease] = JSON.parse(renewed.stdout);
    expect(lease).toMatchObject({ key: 'job', owner: 'ci', token: before.holders[0].token });
    expect(Date.parse(lease.expiresAt)).toBeGreaterThan(Date.parse(before.holders[0].expiresAt));
    // Still held after the process that renewed it.
    expect((await inspected('job')).holders).toMatchObject([{ token: lease.token }]);
    expect(await withLease(handoff, 'release')).toMatchObject({ status: 0, stdout: 'Released "job".\n' });
    expect((await place.run(['run', 'job', '--wait', '0', '--', 'true'])).status).toBe(0);
  });

  it('keep it in a file that only its user can read, and that is gone afterwards', async () => {
    expect(await acquired('a', '--key', 'b', '--ttl', '10m', '--handoff', file())).toBe('');
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    expect(readFileSync(file(), 'utf8')).toMatch(/^[\w-]+\n[\w-]+\n$/);
    const renewed = await place.run(['renew', '--handoff', file()]);
    expect(renewed.stdout).toMatch(
      /^Renewed "a" until .+, token \d+\.\nRenewed "b" until .+, token \d+\.\n$/,
    );
    const released = await place.run(['release', '--handoff', file(), '--json']);
    expect(JSON.parse(released.stdout)).toEqual({ released: ['a', 'b'] });
    expect(existsSync(file())).toBe(false);
    expect((await place.run(['release', '--handoff', file()])).status).toBe(64);
    for (const key of ['a', 'b']) expect((await place.run(['inspect', key])).status).toBe(1);
  });

  it('print the lease and what to know of it as JSON, and --quiet does not hide it', async () => {
    const [lease] = JSON.parse(await acquired('job', '--ttl', '10m', '--json', '--quiet'));
    expect(lease).toMatchObject({ key: 'job', token: (await inspected('job')).holders[0].token });
    expect(await withLease(lease.handoff, 'release', '--quiet')).toMatchObject({ status: 0, stdout: '' });
  });

  it('share, and count permits', async () => {
    const first = await acquired('doc', '--shared', '--ttl', '10m');
    const second = await acquired('doc', '--shared', '--ttl', '10m', '--wait', '0');
    expect((await place.run(['acquire', 'doc', '--ttl', '1m', '--wait', '0'])).status).toBe(75);
    for (const handoff of [first, second]) expect((await withLease(handoff, 'release')).status).toBe(0);
    await acquired('pool', '--capacity', '2', '--permits', '2', '--ttl', '10m');
    expect(
      (await place.run(['acquire', 'pool', '--capacity', '2', '--ttl', '1m', '--wait', '0'])).status,
    ).toBe(75);
  });

  it('exit 76 when the lease is over: its ttl, an eviction, a release', async () => {
    const expired = await acquired('job', '--ttl', '5s');
    await expect.poll(async () => (await inspected('job')).holders, { timeout: 60_000 }).toEqual([]);
    const evicted = await acquired('job', '--ttl', '10m');
    await place.run(['evict', 'job', '--yes', '--reason', 'host retired']);
    const released = await acquired('job', '--ttl', '10m');
    await withLease(released, 'release');
    for (const handoff of [expired, evicted, released]) {
      for (const command of ['renew', 'release']) {
        const { status, stdout, stderr } = await withLease(handoff, command);
        expect({ status, stdout }).toEqual({ status: 76, stdout: '' });
        expect(stderr).toMatch(
          /^holdfast: The lease on "job" \(token \d+\) that was handed off is over: .+ \(store: sqlite:.+\)\n$/,
        );
      }
    }
    expect((await withLease(evicted, 'renew')).stderr).toContain('host retired');
  });

  it('release what is left of several leases, and say that one of them was lost', async () => {
    await acquired('a', '--key', 'b', '--ttl', '10m', '--handoff', file());
    await place.run(['evict', 'a', '--yes']);
    expect((await place.run(['renew', '--handoff', file()])).status).toBe(76);
    const { status, stderr } = await place.run(['release', '--handoff', file()]);
    expect(status).toBe(76);
    expect(stderr).toContain('The lease on "a"');
    expect((await place.run(['inspect', 'b'])).status).toBe(1);
    expect(existsSync(file())).toBe(false);
  });

  it('say what is wrong with a lease that cannot be read, without showing it', async () => {
    const handoff = await acquired('job', '--ttl', '10m');
    const broken = await withLease(handoff.slice(0, -3), 'release');
    expect(broken.status).toBe(64);
    expect(broken.stderr).not.toContain(handoff.slice(0, 20));
    const elsewhere = await withLease(handoff, 'release', '--namespace', 'other');
    expect(elsewhere).toMatchObject({ status: 64, stderr: expect.stringContaining('namespace "default"') });
    writeFileSync(file(), '');
    expect(await place.run(['renew', '--handoff', file()])).toMatchObject({
      status: 64,
      stderr: `holdfast: ${file()} is empty: was the lock acquired?\n`,
    });
  });

  it('leave no lock behind when the lease cannot be written', async () => {
    const nowhere = join(place.folder, 'no-such-folder', 'lease');
    const acquire = ['acquire', 'job', '--ttl', '10m', '--min-hold', '1h'];
    const { status, stderr } = await place.run([...acquire, '--handoff', nowhere]);
    expect(status).toBe(1);
    expect(stderr).toMatch(/^holdfast: --handoff .+: ENOENT/);
    const running = place.start(acquire);
    running.child.stdout?.destroy();
    expect((await running.ended).status).toBe(1);
    expect((await place.run(['inspect', 'job'])).status).toBe(1);
    const told = place.start([...acquire, '--handoff', file(), '--json']);
    told.child.stdout?.destroy();
    expect((await told.ended).status).toBe(1);
    expect((await place.run(['inspect', 'job'])).status).toBe(1);
    expect(existsSync(file())).toBe(false);
    const memory = await place.run(['acquire', 'job', '--ttl', '10m', '--store', 'memory:']);
    expect(memory).toMatchObject({ status: 64, stderr: expect.stringContaining('ends with this command') });
  });
});
