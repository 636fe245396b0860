import { describe, expect, it } from 'vitest';
import { EXIT, Failure } from '../src/failure.js';
import { type CommandShape, parseInvocation } from '../src/options/invocation.js';
import { readRequest } from '../src/run/request.js';

const RUN: CommandShape = {
  name: 'run',
  operands: { min: 1, max: 1, text: 'KEY [OPTIONS] -- COMMAND [ARGS]' },
  takesCommandLine: true,
  options: [
    'key',
    'metadata',
    'ttl',
    'wait',
    'owner',
    'capacity',
    'permits',
    'grace',
    'min-hold',
    'max-hold',
  ],
};
const LS: CommandShape = {
  name: 'ls',
  operands: { min: 0, max: 1, text: '[PREFIX]' },
  takesCommandLine: false,
  options: ['limit'],
};

function parse(line: string) {
  return parseInvocation(line.split(' ').filter(Boolean), [RUN, LS]);
}

function failureOf(act: () => unknown): Failure {
  try {
    act();
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

describe('the arguments', () => {
  it('give the command, its operands and options, wherever these stand', () => {
    const invocation = parse('--store sqlite:x run --ttl=5s key --wait 0 --json -- ls -l --help');
    expect(invocation.command?.name).toBe('run');
    expect(invocation.operands).toEqual(['key']);
    expect(invocation.commandLine).toEqual(['ls', '-l', '--help']);
    expect(invocation.options.text('store')).toBe('sqlite:x');
    expect(invocation.options.durationMs('ttl')).toBe(5_000);
    expect(invocation.options.durationMs('wait')).toBe(0);
    expect(invocation.options.has('json')).toBe(true);
    expect(invocation.options.has('help')).toBe(false);
  });

  it('take a key that starts with a dash after --', () => {
    expect(parse('ls -- -odd').operands).toEqual(['-odd']);
  });

  it('name no command at all', () => {
    expect(parse('--version').command).toBeNull();
    expect(parse('').command).toBeNull();
  });

  it('need no operands where help is asked for', () => {
    expect(parse('run --help').options.has('help')).toBe(true);
    expect(parse('run -h').options.has('help')).toBe(true);
  });

  const wrong: readonly (readonly [line: string, text: string])[] = [
    ['rnu key -- true', 'unknown command "rnu"; did you mean run?'],
    ['frobnicate', 'unknown command "frobnicate"; commands are run, ls'],
    ['run key --tll 5s -- true', 'unknown option --tll; did you mean --ttl?'],
    ['run key --xyzzy -- true', 'unknown option --xyzzy; see holdfast run --help'],
    ['run key -x -- true', 'unknown option -x; see holdfast run --help'],
    ['ls --ttl 5s', '--ttl is an option of run, not of ls'],
    ['run key --ttl -- true', '--ttl needs a value'],
    ['run key --ttl --wait 5s -- true', '--ttl needs a value'],
    ['run key --json=yes -- true', '--json takes no value'],
    ['run -- true', 'run needs a KEY; usage: holdfast run KEY [OPTIONS] -- COMMAND [ARGS]'],
    ['run key', 'run needs a command after --; usage: holdfast run KEY [OPTIONS] -- COMMAND [ARGS]'],
    ['run key --', 'run needs a command after --; usage: holdfast run KEY [OPTIONS] -- COMMAND [ARGS]'],
    ['run key echo hi', 'unexpected "echo"; put -- before the command'],
    ['ls a postgres://u:secret@h/d', 'unexpected "postgres://u:***@h/d"; put --store before the URL'],
    ['ls a b', 'unexpected "b"; usage: holdfast ls [PREFIX]'],
  ];
  it.each(wrong)('"%s" is refused: %s', (line, text) => {
    const failure = failureOf(() => parse(line));
    expect(failure.message).toBe(text);
    expect(failure.status).toBe(EXIT.usage);
  });
});

describe('what run is asked for', () => {
  it('has the defaults of the library, and a grace of a quarter of the ttl, at most 5 s', () => {
    const request = readRequest(parse('run key -- true'));
    expect(request).toMatchObject({
      keys: ['key'],
      waitMs: 10_000,
      capacity: null,
      permits: 1,
      graceMs: 5_000,
    });
    expect(request.acquire).toEqual({ ttl: 30_000, wait: 10_000, metadata: { command: 'true' } });
    expect(readRequest(parse('run key --ttl 4s -- true')).graceMs).toBe(1_000);
    expect(readRequest(parse('run key --ttl 4s --grace 0 -- true')).graceMs).toBe(0);
  });

  it('takes everything that it is told', () => {
    const line =
      'run key --ttl 1m --wait 5m --owner me --capacity 3 --permits 2 --grace 10s --min-hold 1h --max-hold 1d -- true';
    const request = readRequest(parse(line));
    expect(request).toMatchObject({ waitMs: 300_000, capacity: 3, permits: 2, graceMs: 10_000 });
    expect(request.acquire).toEqual({
      ttl: 60_000,
      wait: 300_000,
      owner: 'me',
      minHold: 3_600_000,
      maxHold: 86_400_000,
      metadata: { command: 'true' },
    });
  });

  it('has all keys once, and all metadata', () => {
    const line =
      'run b --key a --key=b --metadata build=42 --metadata note=x=y -- /usr/bin/make --password hunter2';
    const request = readRequest(parse(line));
    expect(request.keys).toEqual(['b', 'a']);
    expect(request.acquire.metadata).toEqual({ command: 'make', build: '42', note: 'x=y' });
    const told = readRequest(parse('run --key a --metadata command=deploy -- /usr/bin/make'));
    expect(told.keys).toEqual(['a']);
    expect(told.acquire.metadata).toEqual({ command: 'deploy' });
  });

  const wrong: readonly (readonly [options: string, text: RegExp])[] = [
    ['--ttl 30', /--ttl: "30" is not a duration; add a unit, as in 30s/],
    ['--ttl soon', /--ttl: "soon" is not a duration; write it like 500ms, 30s, 5m, 1h or 7d/],
    ['--ttl 0', /--ttl must be longer than 0/],
    ['--wait=-1s', /--wait: "-1s" is not a duration/],
    ['--permits 2', /--permits needs --capacity/],
    ['--permits 4 --capacity 3', /--permits 4 is more than --capacity 3/],
    ['--capacity 0', /--capacity: "0" is not a whole number above 0/],
    ['--capacity 1.5', /--capacity: "1.5" is not a whole number above 0/],
    ['--ttl 4s --grace 3s', /--grace 3s is more than half of the ttl \(2s\)/],
  ];
  it.each(wrong)('%s is refused: %s', (options, text) => {
    const failure = failureOf(() => readRequest(parse(`run key ${options} -- true`)));
    expect(failure.message).toMatch(text);
    expect(failure.status).toBe(EXIT.usage);
  });
});
