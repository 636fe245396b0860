import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { usePlace } from './holdfast.js';

const place = usePlace();
describe('help', () => {
  it('is had by asking for it in words too', async () => {
    const asked = await place.run(['help', 'run']);
    expect(asked).toEqual(await place.run(['run', '--help']));
    expect(asked.status).toBe(0);
  });

  it('is not needed for the version', async () => {
    const { version } = JSON.parse(
      readFileSync(new URL('../../packages/cli/package.json', import.meta.url), 'utf8'),
    );
    expect(await place.run(['--version'])).toMatchObject({ status: 0, stdout: `${version}\n` });
  });
});

describe('a wrong call', () => {
  it('is told in one line and exits 64', async () => {
    const { status, stdout, stderr } = await place.run(['run', 'job', '--tll', '5s', '--', 'true']);
    expect({ status, stdout }).toEqual({ status: 64, stdout: '' });
    expect(stderr).toBe('holdfast: unknown option --tll; did you mean --ttl?\n');
  });
});

describe('a store that cannot be used is told in one line', () => {
  it('and exits 69 when the file is no database, which stays as it was', async () => {
    const file = join(place.folder, 'notes.txt');
    writeFileSync(file, 'These are my notes, and no database.\n'.repeat(50));
    const before = readFileSync(file);
    for (const args of [['ls'], ['run', 'job', '--', 'touch', 'ran'], ['doctor']]) {
      const [command = '', ...rest] = args;
      const { status, stdout, stderr } = await place.run([command, '--store', `sqlite:${file}`, ...rest]);
      expect(status).toBe(69);
      expect(stdout).toBe('');
      expect(stderr).toMatch(/^holdfast: sqlite:.*notes\.txt: .+\n$/);
    }
    expect(readFileSync(file)).toEqual(before);
  });

  it('and exits 69 when the folder for it cannot be made', async () => {
    writeFileSync(join(place.folder, 'file'), '');
    const { status, stderr } = await place.run([
      'ls',
      '--store',
      `sqlite:${join(place.folder, 'file', 'locks.db')}`,
    ]);
    expect(status).toBe(69);
    expect(stderr).toMatch(/^holdfast: .+\n$/);
  });

  it('and exits 64 when it names a folder', async () => {
    mkdirSync(join(place.folder, 'folder'));
    const { status, stderr } = await place.run(['ls', '--store', `sqlite:${join(place.folder, 'folder')}`]);
    expect(status).toBe(64);
    expect(stderr).toMatch(/^holdfast: .+is a folder.*\n$/);
  });

  it('in JSON where that was asked for', async () => {
    const { status, stderr } = await place.run(['ls', '--json', '--store', 'carrier-pigeon:coop']);
    expect(status).toBe(64);
    expect(JSON.parse(stderr).error).toMatchObject({ status: 64, code: 'invalid-argument' });
  });

  it('without the password in its URL', async () => {
    const { stderr } = await place.run(['ls', '--store', 'carrier-pigeon://me:secret@coop/loft']);
    expect(stderr).toContain('me:***@coop');
    expect(stderr).not.toContain('secret');
  });
});

describe('without --store and HOLDFAST_STORE', () => {
  it('the locks are in the state folder of the user, which nobody else can read', async () => {
    const environment = { HOLDFAST_STORE: '', XDG_STATE_HOME: join(place.folder, 'state of ?me 100%') };
    const ran = await place.run(['run', 'job', '--', 'ls', '-l', 'state of ?me 100%'], environment);
    expect(ran).toMatchObject({ status: 0, stderr: '' });
    expect(ran.stdout).toMatch(/drwx------.*holdfast/);
  });

  it('that is .local/state in the home folder by default', async () => {
    const environment = { HOLDFAST_STORE: '', XDG_STATE_HOME: '', HOME: place.folder };
    const ran = await place.run(['run', 'job', '--', 'ls', '.local/state/holdfast'], environment);
    expect(ran).toMatchObject({ status: 0 });
    expect(ran.stdout).toContain('locks.db');
  });

  it.each([{ HOME: '' }, { HOME: 'home' }, { HOME: '', XDG_STATE_HOME: 'state' }])(
    'and without an absolute home folder, %j, nothing is done',
    async (variables) => {
      const environment = { HOLDFAST_STORE: '', XDG_STATE_HOME: '', ...variables };
      const ran = await place.run(['run', 'job', '--', 'touch', 'ran'], environment);
      expect(ran.status).toBe(64);
      expect(ran.stderr).toMatch(/^holdfast: no home folder to keep the locks in: .+--store.+\n$/);
      expect(readdirSync(place.folder)).toEqual([]);
    },
  );

  it('a relative XDG_STATE_HOME does not count', async () => {
    const environment = { HOLDFAST_STORE: '', XDG_STATE_HOME: 'state', HOME: place.folder };
    const ran = await place.run(['run', 'job', '--', 'true'], environment);
    expect(ran).toMatchObject({ status: 0, stderr: '' });
    expect(readdirSync(place.folder)).toEqual(['.local']);
  });
});
