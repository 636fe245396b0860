/** The files of `--handoff`: read-only folders, links, pipes, and files that are in use. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { BINARY, type Ended, usePlace } from './holdfast.js';

const place = usePlace();
const folder = (): string => join(place.folder, 'leases');
const file = (): string => join(folder(), 'lease');
afterEach(() => {
  if (existsSync(folder())) chmodSync(folder(), 0o700);
});

async function acquired(...args: readonly string[]): Promise<string> {
  const { status, stdout, stderr } = await place.run(['acquire', ...args]);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout;
}

/** Root may write everywhere, unless its capabilities are taken from it. */
function unprivileged(...args: readonly string[]): Promise<Ended> {
  const prefix = process.getuid?.() === 0 ? ['setpriv', '--inh-caps=-all', '--bounding-set=-all'] : [];
  const [command = '', ...rest] = [...prefix, process.execPath, BINARY, ...args];
  return place.startOther(command, rest).ended;
}

const shell = (script: string): Promise<Ended> =>
  place.startOther('sh', ['-c', `holdfast() { '${process.execPath}' '${BINARY}' "$@"; }; ${script}`]).ended;

async function leaseInReadOnlyFolder(): Promise<void> {
  mkdirSync(folder());
  await acquired('job', '--ttl', '10m', '--handoff', file());
  chmodSync(folder(), 0o500);
}

const isFree = async (key: string): Promise<boolean> => (await place.run(['inspect', key])).status === 1;

describe('a --handoff file in a read-only folder', () => {
  it('is renewed as long as nothing in it changes', async () => {
    await leaseInReadOnlyFolder();
    expect(await unprivileged('renew', '--handoff', file())).toMatchObject({ status: 0, stderr: '' });
    const longer = await unprivileged('renew', '--handoff', file(), '--ttl', '1h');
    expect(longer).toMatchObject({ status: 1, stdout: expect.stringMatching(/^Renewed "job" until /) });
    expect(longer.stderr).toMatch(/^holdfast: --handoff \S+ could not be written: EACCES.*\n$/);
    expect((await place.run(['renew', '--handoff', file()])).status).toBe(0);
  });

  it('is left, with the lock released', async () => {
    await leaseInReadOnlyFolder();
    const { status, stdout, stderr } = await unprivileged('release', '--handoff', file());
    expect({ status, stdout }).toEqual({ status: 1, stdout: 'Released "job".\n' });
    expect(stderr).toMatch(/^holdfast: --handoff \S+ could not be removed: EACCES.*\n$/);
    expect(await isFree('job')).toBe(true);
  });

  it('does not hide that the lease was lost', async () => {
    await leaseInReadOnlyFolder();
    await place.run(['evict', 'job', '--yes']);
    expect(await unprivileged('renew', '--handoff', file(), '--ttl', '1h')).toMatchObject({ status: 76 });
    const { status, stderr } = await unprivileged('release', '--handoff', file());
    expect(status).toBe(76);
    expect(stderr).toMatch(/warning: --handoff \S+ could not be removed: EACCES/);
    expect(stderr).toContain('The lease on "job"');
  });
});

describe('a --handoff file that is not a regular file', () => {
  it('is only written and read: /dev/stdout and /dev/stdin', async () => {
    const { status, stdout, stderr } = await shell(
      `cp -P /dev/stdin /dev/stdout . || exit
       handoff=$(holdfast acquire job --ttl 10m --handoff stdout) || exit
       echo "$handoff" | holdfast renew --ttl 1h --quiet --handoff stdin || exit
       echo "$handoff" | holdfast release --handoff stdin`,
    );
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: 'Released "job".\n', stderr: '' });
    for (const name of ['stdin', 'stdout'])
      expect(lstatSync(join(place.folder, name)).isSymbolicLink()).toBe(true);
  });

  it('may be a named pipe, which needs a reader', async () => {
    const pipe = join(place.folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const unread = await place.run(['acquire', 'job', '--ttl', '10m', '--handoff', pipe]);
    expect(unread.status).toBe(1);
    expect(unread.stderr).toMatch(/^holdfast: --handoff \S+ could not be written: ENXIO/);
    expect(await isFree('job')).toBe(true);
    const handoff = await acquired('job', '--ttl', '10m');
    const releasing = place.start(['release', '--handoff', pipe]);
    // Not by this process: it would block until the other one reads.
    await shell(`echo ${handoff.trim()} > pipe`);
    expect(await releasing.ended).toMatchObject({ status: 0, stderr: '' });
    expect(lstatSync(pipe).isFIFO()).toBe(true);
  });

  it('stays a link, and the file that it names is written and emptied', async () => {
    const [link, target] = [join(place.folder, 'link'), join(place.folder, 'target')];
    writeFileSync(target, '', { mode: 0o644 });
    symlinkSync(target, link);
    await acquired('job', '--ttl', '10m', '--handoff', link);
    expect(statSync(target).mode & 0o777).toBe(0o600);
    const before = readFileSync(target, 'utf8');
    expect((await place.run(['renew', '--handoff', link, '--ttl', '1h'])).status).toBe(0);
    expect(readFileSync(target, 'utf8')).not.toBe(before);
    expect((await place.run(['release', '--handoff', link])).status).toBe(0);
    expect(readFileSync(target, 'utf8')).toBe('');
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
  });
});

describe('a --handoff file with a lease in it', () => {
  it('is not written by another acquire, also when it got there while that one waited', async () => {
    mkdirSync(folder());
    const held = await acquired('b', '--ttl', '10m');
    const late = place.start(['acquire', 'b', '--ttl', '10m', '--wait', '60s', '--handoff', file()]);
    await place.waiting('b', 1);
    await acquired('a', '--ttl', '10m', '--handoff', file());
    const lease = readFileSync(file(), 'utf8');
    const refusal = {
      status: 64,
      stdout: '',
      stderr: `holdfast: --handoff ${file()} is not empty: end its lease with \`holdfast release --handoff ${file()}\`, remove the file, or give another\n`,
    };
    expect(await place.run(['acquire', 'c', '--ttl', '10m', '--handoff', file()])).toMatchObject(refusal);
    await place.run(['release'], { HOLDFAST_HANDOFF: held.trim() });
    expect(await late.ended).toMatchObject(refusal);
    for (const key of ['b', 'c']) expect(await isFree(key)).toBe(true);
    expect(readFileSync(file(), 'utf8')).toBe(lease);
    expect(readdirSync(folder())).toEqual(['lease']);
    expect((await place.run(['release', '--handoff', file()])).status).toBe(0);
  });
});
