import { describe, expect, it } from 'vitest';
import { nearest } from '../src/options/nearest.js';
import { Options } from '../src/options/options.js';
import { formatDuration, formatTime } from '../src/printing/describe.js';
import { jsonText, openTerminal, printable, table } from '../src/printing/terminal.js';
import { TextOutlet } from './text-outlet.js';

function terminal(isTTY: boolean, environment: { readonly [name: string]: string } = {}, json = false) {
  const outlet = new TextOutlet(isTTY);
  return { terminal: openTerminal(outlet, outlet, environment, json), written: outlet.written };
}

const durationIn = (text: string) => new Options(new Map([['ttl', [text]]])).durationMs('ttl');

describe('durations', () => {
  it.each([
    ['500ms', 500],
    ['30s', 30_000],
    ['1.5s', 1_500],
    ['5m', 300_000],
    ['1h', 3_600_000],
    ['0', 0],
  ])('"%s" is %d ms', (text, ms) => expect(durationIn(text)).toBe(ms));

  it.each(['', '5', '5 s', '-5s', '1e3s', '5S', 's', 'NaN', 'Infinity', '5s5'])('"%s" is refused', (text) => {
    expect(() => durationIn(text)).toThrow(/is not a duration/);
  });

  it.each([
    [0, '0ms'],
    [12.4, '12ms'],
    [4_200, '4.2s'],
    [9_960, '10s'],
    [59_400, '59s'],
    [59_700, '1m'],
    [64_000, '1m 4s'],
    [3_600_000, '1h'],
    [11_100_000, '3h 5m'],
    [176_400_000, '2d 1h'],
    [-4_200, '-4.2s'],
  ])('%d ms reads "%s"', (ms, text) => expect(formatDuration(ms)).toBe(text));

  it('times read by this machine, to the second', () => {
    expect(formatTime(new Date(2026, 2, 1, 4, 5, 9))).toBe('2026-03-01 04:05:09');
  });
});

describe('what was probably meant', () => {
  const words = ['ttl', 'wait', 'owner', 'permits', 'capacity'];
  it.each([
    ['tll', 'ttl'],
    ['wiat', 'wait'],
    ['permit', 'permits'],
    ['cap', 'capacity'],
    ['xyzzy', null],
    ['t', null],
  ])('%s: %s', (word, meant) => expect(nearest(word, words)).toBe(meant));
});

describe('a terminal', () => {
  it('has colours', () => {
    expect(terminal(true).terminal.paint('red', 'x')).toBe('\u001b[31mx\u001b[39m');
  });

  it('has none when it is a pipe, when NO_COLOR is set, or when it is dumb', () => {
    expect(terminal(false).terminal.paint('red', 'x')).toBe('x');
    expect(terminal(true, { NO_COLOR: '1' }).terminal.paint('red', 'x')).toBe('x');
    expect(terminal(true, { TERM: 'dumb' }).terminal.paint('red', 'x')).toBe('x');
  });

  it('shows warnings in the form that was asked for', () => {
    const people = terminal(false);
    people.terminal.warn('mind\nthe gap');
    expect(people.written).toEqual(['holdfast: mind\\u{a}the gap\n']);
    const machine = terminal(false, {}, true);
    machine.terminal.warn('mind the gap');
    expect(machine.written).toEqual(['{"warning":"mind the gap"}\n']);
  });

  it('never gets an escape sequence out of a name', () => {
    expect(printable('a\u001b[2Jb\nc\u202ed é 鎖')).toBe('a\\u{1b}[2Jb\\u{a}c\\u{202e}d é 鎖');
  });

  it('never gets one out of JSON, which stays the same JSON', () => {
    const value = { 'a\u009b': ['\u001b[2J', 'b\u007f\u2028', '\u{e0001} é 鎖'] };
    expect(JSON.parse(jsonText(value, 2))).toEqual(value);
    expect(jsonText(value)).toBe('{"a\\u009b":["\\u001b[2J","b\\u007f\\u2028","\\udb40\\udc01 é 鎖"]}');
  });
});

describe('a table', () => {
  it('aligns its columns, wide letters too, and pads no line at its end', () => {
    const columns = [{ title: 'KEY' }, { title: 'TOKEN', right: true }, { title: 'WHO' }];
    const rows = [
      ['a', '7', 'me'],
      ['鎖鎖鎖', '12345678', 'someone else'],
      ['long key', '1', ''],
    ];
    expect(table(terminal(false).terminal, columns, rows)).toEqual([
      'KEY          TOKEN  WHO',
      'a                7  me',
      '鎖鎖鎖    12345678  someone else',
      'long key         1',
    ]);
  });
});
