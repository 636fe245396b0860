/** Help and wrong calls, of which nothing has to be seen from outside: the command in this process. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { runProgram } from '../src/program.js';
import { TextOutlet } from './text-outlet.js';

async function called(args: readonly string[]): Promise<{ status: number; stdout: string; stderr: string }> {
  const [stdout, stderr] = [new TextOutlet(), new TextOutlet()];
  const status = await runProgram(args, stdout, stderr);
  return { status, stdout: stdout.text, stderr: stderr.text };
}

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-usage-'));
  vi.stubEnv('HOLDFAST_STORE', `sqlite:${join(folder, 'locks.db')}`);
  vi.stubEnv('HOLDFAST_HANDOFF', undefined);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

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
    const { status, stdout, stderr } = await called(['--help']);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    for (const command of COMMANDS) expect(stdout).toMatch(new RegExp(`^  ${command} `, 'm'));
    for (const text of ['HOLDFAST_STORE', '64 ', '69 ', '75 ', '76 ', '126 ', '127 '])
      expect(stdout).toContain(text);
  });

  it.each(COMMANDS)('of %s has its usage, its options and examples, and fits a terminal', async (command) => {
    const { status, stdout } = await called([command, '--help']);
    expect(status).toBe(0);
    expect(stdout).toContain(`  holdfast ${command}`);
    for (const title of ['USAGE', 'OPTIONS', 'EXAMPLES'])
      expect(stdout).toMatch(new RegExp(`^${title}$`, 'm'));
    expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(120);
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
    [['run', 'job', '--ttl', '1ms', '--', 'true'], /^--ttl must be from 10ms to 7d$/],
    [['run', 'job', '--ttl', '169h', '--', 'true'], /^--ttl must be from 10ms to 7d$/],
    [['run', 'job', '--tick', '500ms', '--', 'true'], /^--tick must be from 1s to 6d$/],
    [['run', 'job', '--tick', '145h', '--', 'true'], /^--tick must be from 1s to 6d$/],
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
    [['renew'], /^no lease: give --handoff FILE, or set HOLDFAST_HANDOFF to the output of `acquire`$/],
    [['release', '--handoff', 'none'], /^--handoff none: there is no such file; was the lock acquired/],
    [['completion'], /^completion needs a SHELL; usage: holdfast completion SHELL$/],
    [['lead', 'job'], /^lead needs a command after --; usage: /],
    [['lead', 'job', '--wait', '5s', '--', 'true'], /^--wait is an option of run, acquire, not of lead$/],
    [
      ['run', 'job', '--max-hold', '5s', '--', 'true'],
      /^--max-hold must be longer than --grace, which is 5s$/,
    ],
    [['run', 'job', '--min-hold', '200h', '--', 'true'], /^--min-hold must be at most 7d$/],
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
    const { status, stdout, stderr } = await called(args);
    expect(status).toBe(64);
    expect(stdout).toBe('');
    const [line, ...rest] = stderr.split('\n');
    expect(rest).toEqual(['']);
    expect(line).toMatch(/^holdfast: /);
    expect(line?.replace('holdfast: ', '')).toMatch(text);
  });
});
