/** Output for people: colour if it is wanted, aligned columns, no control characters from others. */
import { reasonOf } from '../failure.js';
import type { Outlet } from './outlet.js';

export type Colour = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';

const CODES: { readonly [colour in Colour]: readonly [number, number] } = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
};

export interface Terminal {
  readonly isTty: boolean;
  /** Whether stderr is a terminal. */
  readonly errIsTty: boolean;
  readonly rows: number;
  /** Resolves once stdout has taken all output, or has failed. */
  flushed(): Promise<void>;
  /** Whether stdout cannot be written any more: its reader has left, or its disk is full. */
  failed(): boolean;
  /** A line on stdout. */
  out(line: string): void;
  /** Text on stdout, without a line break. */
  raw(text: string): void;
  /** Text on stdout that may be lost: the caller learns of it, and the exit neither waits nor fails. */
  log(text: string, done: (error: Error | null) => void): void;
  /** Whether a write hangs in a way that keeps the process from exiting. */
  hangs(): boolean;
  /** A line on stderr. */
  err(line: string): void;
  /** A warning while the command goes on: a line on stderr, as JSON with --json. */
  warn(text: string): void;
  /** A line on stderr about an event, as JSON with --json. */
  note(text: string): void;
  paint(colour: Colour, text: string): string;
}

export function openTerminal(
  stdout: Outlet,
  stderr: Outlet,
  environment: NodeJS.ProcessEnv,
  json: boolean,
): Terminal {
  const { isTTY: isTty } = stdout;
  const coloured = isTty && !environment.NO_COLOR && environment.TERM !== 'dumb';
  const say = (kind: 'warning' | 'note', text: string): void => {
    const line = printable(text);
    stderr.write(json ? `${jsonText({ [kind]: line })}\n` : `holdfast: ${line}\n`);
  };
  return {
    isTty,
    errIsTty: stderr.isTTY,
    get rows() {
      // Some terminals do not know their size, and report 0.
      return stdout.rows || 24;
    },
    flushed: () => stdout.flushed(),
    failed: () => stdout.failure !== null,
    out: (line) => stdout.write(`${line}\n`),
    raw: (text) => stdout.write(text),
    log: (text, done) => stdout.send(text, done),
    hangs: () => stdout.inThread || stderr.inThread,
    err: (line) => stderr.write(`${line}\n`),
    warn: (text) => say('warning', text),
    note: (text) => say('note', text),
    paint(colour, text) {
      const [on, off] = CODES[colour];
      return coloured ? `\u001b[${on}m${text}\u001b[${off}m` : text;
    },
  };
}

/** For --quiet: prints only failures, and output that a command writes with `raw`. */
export function quieted(terminal: Terminal): Terminal {
  const silent = (): void => undefined;
  return Object.create(terminal, {
    out: { value: silent },
    warn: { value: silent },
    note: { value: silent },
  });
}

/** Warns of a problem that does not change the outcome of the command. */
export function warn(terminal: Terminal, text: string, error: unknown): void {
  terminal.warn(`warning: ${text}: ${reasonOf(error)}`);
}

/** Owners come from other machines: an escape sequence in one must not reach the reader's terminal. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => {
    return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
  });
}

/**
 * JSON for people's terminals, too. `JSON.stringify` escapes the control characters of ASCII only, and U+009B begins an escape
 * sequence as well.
 */
export function jsonText(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) =>
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}

/** A name in a message. */
export function quote(name: string): string {
  return `"${printable(name)}"`;
}

export interface Column {
  readonly title: string;
  readonly right?: boolean;
  readonly colour?: Colour;
}

/** Lines with aligned columns, titles first. The last column is not padded. */
export function table(
  terminal: Terminal,
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
): string[] {
  const widths = columns.map(({ title }, at) =>
    Math.max(...[title, ...rows.map((row) => row[at] ?? '')].map(widthOf)),
  );
  const line = (cells: readonly string[], colourOf: (at: number) => Colour | undefined): string => {
    const padded = cells.map((cell, at) => {
      const space = ' '.repeat(Math.max(0, (widths[at] ?? 0) - widthOf(cell)));
      const colour = colourOf(at);
      const painted = colour ? terminal.paint(colour, cell) : cell;
      if (columns[at]?.right) return space + painted;
      return at === columns.length - 1 ? painted : painted + space;
    });
    return padded.join('  ').trimEnd();
  };
  const titles = columns.map(({ title }) => title);
  return [line(titles, () => 'dim'), ...rows.map((row) => line(row, (at) => columns[at]?.colour))];
}

/** Columns on screen: wide letters take two, combining marks none. */
function widthOf(text: string): number {
  let width = 0;
  for (const character of text) {
    if (/\p{M}/u.test(character)) continue;
    width +=
      /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u.test(
        character,
      )
        ? 2
        : 1;
  }
  return width;
}
