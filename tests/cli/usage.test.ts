import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { usePlace } from './holdfast.js';

const place = usePlace();
const COMMANDS = [
  'run',
  'lead',
  'leader',
  'acquire',
  'renew',
  'release',
  'ls',
  'inspect',
  'evict',
  'watch',
  'doctor',
  'migrate',
  'serve',
  'api-key',
  'completion',
  'man',
];

describe('help', () => {
  it('lists every command, the stores and the statuses', async () => {
    const { status, stdout, stderr } = await place.run(['--help']);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    for (const command of COMMANDS) expect(stdout).toMatch(new RegExp(`^  ${command} `, 'm'));
    for (const text of ['HOLDFAST_STORE', '64 ', '69 ', '75 ', '76 ', '126 ', '127 '])
      expect(stdout).toContain(text);
  });

  it.each(COMMANDS)('of %s has its usage, its options and examples, and fits a terminal', async (command) => {
    const { status, stdout } = await place.run([command, '--help']);
    expect(status).toBe(0);
    expect(stdout).toContain(`  holdfast ${command}`);
    for (const title of ['USAGE', 'OPTIONS', 'EXAMPLES'])
      expect(stdout).toMatch(new RegExp(`^${title}$`, 'm'));
    expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(120);
  });

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

describe('a wrong call is told in one line and exits 64', () => {
  const wrong: readonly (readonly [args: readonly string[], text: RegExp])[] = [
    [
      [],
      /^a command is missing: run, lead, leader, acquire, .+, api-key, completion, man; see holdfast --help$/,
    ],
    [['rn', 'job', '--', 'true'], /^unknown command "rn"; did you mean run\?$/],
    [['run', 'job', '--tll', '5s', '--', 'true'], /^unknown option --tll; did you mean --ttl\?$/],
    [['run', 'job'], /^run needs a command after --; usage: /],
    [['run', '--', 'true'], /^run needs a KEY; usage: /],
    [['run', 'job', 'true'], /^unexpected "true"; put -- before the command$/],
    [['run', 'job', '--ttl', '5', '--', 'true'], /^--ttl: "5" is not a duration; add a unit, as in 5s$/],
    [['run', 'job', '--ttl', '0s', '--', 'true'], /^--ttl must be longer than 0$/],
    [['run', 'job', '--permits', '2', '--', 'true'], /^--permits needs --capacity$/],
    [['run', 'job', '--ttl', '1ms', '--', 'true'], /^--ttl must be from 10ms to 168h \(7 days\)$/],
    [['run', 'job', '--ttl', '169h', '--', 'true'], /^--ttl must be from 10ms to 168h \(7 days\)$/],
    [['run', 'job', '--tick', '500ms', '--', 'true'], /^--tick must be from 1s to 144h \(6 days\)$/],
    [['run', 'job', '--tick', '145h', '--', 'true'], /^--tick must be from 1s to 144h \(6 days\)$/],
    [
      ['run', 'job', '--tick', '1m', '--capacity', '2', '--', 'true'],
      /^--tick cannot be combined with --capacity$/,
    ],
    [['run', 'a', '--key', 'b', '--shared', '--', 'true'], /^--key cannot be combined with --shared$/],
    [
      ['run', 'a', '--shared', '--capacity', '2', '--', 'true'],
      /^--shared cannot be combined with --capacity$/,
    ],
    [['run', 'a', '--key', 'b', '--tick', '1m', '--', 'true'], /^--tick cannot be combined with --key$/],
    [['run', 'a', '--key', '', '--', 'true'], /^--key needs a value$/],
    [['run', 'a', '--metadata', 'x', '--', 'true'], /^--metadata: "x" has no name; write it as NAME=TEXT$/],
    [
      ['run', 'a', '--metadata', `x=${'y'.repeat(5_000)}`, '--', 'true'],
      /metadata is longer than 4096 bytes/,
    ],
    [['acquire', 'job'], /^acquire needs --ttl TIME: /],
    [['renew'], /^no lease: give --handoff FILE, or set HOLDFAST_HANDOFF to what `acquire` printed$/],
    [['release', '--handoff', 'none'], /^--handoff none: there is no such file; was the lock acquired/],
    [['completion'], /^completion needs a SHELL; usage: holdfast completion SHELL$/],
    [['lead', 'job'], /^lead needs a command after --; usage: /],
    [['lead', 'job', '--wait', '5s', '--', 'true'], /^--wait is an option of run, acquire, not of lead$/],
    [['run', 'job', '--min-hold', '200h', '--', 'true'], /^--min-hold must be at most 168h \(7 days\)$/],
    [
      ['run', 'job', '--capacity', '1000001', '--', 'true'],
      /^--capacity: 1000001 is too large; at most 1000000$/,
    ],
    [['run', 'job', '--', ''], /^the command after -- is empty; usage: /],
    [['run', '', '--', 'true'], /key/i],
    [['run', 'a\nb', '--', 'true'], /key/i],
    [['run', 'k'.repeat(5_000), '--', 'true'], /key/i],
    [['inspect'], /^inspect needs a KEY; usage: holdfast inspect KEY$/],
    [['inspect', 'a', 'b'], /^unexpected "b"; usage: /],
    [['ls', '--limit', 'many'], /^--limit: "many" is not a whole number above 0$/],
    [['ls', '--limit', '99999999999999999999'], /^--limit: 9+ is too large; at most \d+$/],
    [['ls', '--yes'], /^--yes is an option of evict, not of ls$/],
    [['watch', '--every', '1ms'], /^--every must be at least 50ms$/],
    [['watch', '--every', '2h'], /^--every must be at most 1h$/],
    [['doctor', 'store'], /^unexpected "store"; usage: holdfast doctor$/],
    [['ls', '--print'], /^--print is an option of migrate, not of ls$/],
    [
      ['migrate', 'all'],
      /^unexpected "all"; usage: holdfast migrate \[--print\] \[--supabase\] \[--time-to-live\]$/,
    ],
    [['serve', '--namespace', 'a'], /^unknown option --namespace; see holdfast serve --help$/],
    [
      ['ls', '--store', 'redis://h?prefx=a'],
      /no option "prefx" in a redis: URL\. The options are: prefix\.$/,
    ],
    [['ls', '--store', 'carrier-pigeon:coop'], /carrier-pigeon/],
    [['ls', '--store', 'nonsense'], /nonsense/],
  ];
  it.each(wrong)('%j', async (args, text) => {
    const { status, stdout, stderr } = await place.run(args);
    expect(status).toBe(64);
    expect(stdout).toBe('');
    const [line, ...rest] = stderr.split('\n');
    expect(rest).toEqual(['']);
    expect(line).toMatch(/^holdfast: /);
    expect(line?.replace('holdfast: ', '')).toMatch(text);
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
