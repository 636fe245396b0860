/** The manual page holdfast(1), in the macros of man(7), made from the table of commands and options. */
import { type Command, optionHead, STATUSES, STORES } from '../command.js';
import { ALONE } from '../options/invocation.js';
import { OPTIONS, type OptionName } from '../options/options.js';

/** Variables and their meaning: for the manual page and the reference. */
export const VARIABLES: readonly (readonly [name: string, text: string])[] = [
  ['HOLDFAST_STORE', 'the store, when --store is not given. A password is safer here than in an argument.'],
  ['HOLDFAST_API_KEY', 'the API key for a lock service.'],
  ['HOLDFAST_HANDOFF', 'the lease that acquire printed, for renew and release.'],
  ['HOLDFAST_LOCK, HOLDFAST_TOKEN', 'set for COMMAND: the key and the fencing token, one line per key.'],
  ['NO_COLOR', 'when set, output has no colours.'],
];

export function manPage(commands: readonly Command[], version: string): string {
  return `${[
    `.TH HOLDFAST 1 "" "holdfast ${version}" "User Commands"`,
    '.SH NAME',
    'holdfast \\- run commands under a lock, and show who holds which lock',
    '.SH SYNOPSIS',
    ...commands.flatMap(synopsis),
    '.SH DESCRIPTION',
    roff(
      'holdfast runs a program under a lock that other processes and other machines see, and shows who holds which lock.',
    ),
    '.SH OPTIONS',
    'Options of every command:',
    ...optionList(ALONE),
    '.SH COMMANDS',
    ...commands.flatMap(section),
    '.SH STORES',
    '.nf',
    // Without its title, and without the margin of the help.
    roff(
      STORES.split('\n')
        .slice(1)
        .map((line) => line.slice(2))
        .join('\n'),
    ),
    '.fi',
    '.SH ENVIRONMENT',
    ...VARIABLES.flatMap(([name, text]) => ['.TP', `.B ${roff(name)}`, roff(text)]),
    '.SH EXIT STATUS',
    ...STATUSES.flatMap(([status, meaning]) => ['.TP', `.B ${roff(status)}`, roff(meaning)]),
    '.PP',
    'run and lead exit with the status of COMMAND.',
  ].join('\n')}\n`;
}

function synopsis({ name, operands }: Command): string[] {
  return [`.B holdfast ${roff(name)}`, ...(operands.text === '' ? [] : [roff(operands.text)]), '.br'];
}

function section({ name, operands, about, options, examples }: Command): string[] {
  return [
    `.SS "holdfast ${roff(`${name} ${operands.text}`.trimEnd()).replaceAll('"', '\\(dq')}"`,
    ...about.split('\n\n').flatMap((paragraph) => [roff(paragraph), '.PP']),
    ...optionList(options),
    '.PP',
    'Examples:',
    '.PP',
    '.nf',
    ...examples.flatMap(([line, what]) => [roff(`# ${what}`), roff(line)]),
    '.fi',
  ];
}

function optionList(names: readonly OptionName[]): string[] {
  return names.flatMap((name) => ['.TP', `.B ${roff(optionHead(name))}`, roff(OPTIONS[name].text)]);
}

/** Text as roff reads it: no escapes, no requests at the start of a line, dashes that can be copied. */
function roff(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll('~', '\\(ti')
    .replaceAll('^', '\\(ha')
    .replace(/^([.'])/gm, '\\&$1');
}
