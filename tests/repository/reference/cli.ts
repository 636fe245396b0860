/** The reference of the command, from the table of commands and options that also makes its help and its manual page. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Command, optionHead, STATUSES, STORES } from '../../../packages/cli/dist/command.js';
import { ALONE, EVERYWHERE } from '../../../packages/cli/dist/options/invocation.js';
import { OPTIONS, type OptionName } from '../../../packages/cli/dist/options/options.js';
import { VARIABLES } from '../../../packages/cli/dist/reference/man-page.js';

const ABOUT = `Every command with its options and their defaults. [The holdfast command](../cli.md) explains them with examples that run. Made from
the help texts by \`npm run api:update\`; a test compares them.`;

export async function cliReference(cli: string): Promise<string> {
  const commands = await commandsIn(join(cli, 'dist/commands'));
  const summaries = commands.map(
    ({ name, summary }) => [`[\`${name}\`](#holdfast-${name})`, summary] as const,
  );
  return `${[
    '# Command reference',
    ABOUT,
    table('command', 'what it does', summaries),
    '## Options of every command',
    optionTable(ALONE),
    ...commands.flatMap(sectionOf),
    '## Stores',
    text(
      STORES.split('\n')
        .slice(1)
        .map((line) => line.slice(2))
        .join('\n'),
    ),
    '## Environment',
    table(
      'variable',
      'meaning',
      VARIABLES.map(([name, meaning]) => [`\`${name}\``, meaning]),
    ),
    '## Exit status',
    table('status', 'meaning', STATUSES),
    '`run` and `lead` exit with the status of COMMAND.',
  ].join('\n\n')}\n`;
}

/** Sorted by name. */
async function commandsIn(folder: string): Promise<readonly Command[]> {
  const files = readdirSync(folder).filter((file) => file.endsWith('.js'));
  const modules = await Promise.all(
    files.map((file) => import(pathToFileURL(join(folder, file)).href) as Promise<Record<string, unknown>>),
  );
  const commands = modules.flatMap((module) => Object.values(module).filter(isCommand));
  return commands.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function isCommand(value: unknown): value is Command {
  return typeof value === 'object' && value !== null && 'operands' in value && 'summary' in value;
}

function sectionOf({ name, operands, about, options, examples }: Command): readonly string[] {
  const own = options.filter((option) => !EVERYWHERE.includes(option));
  return [
    `## holdfast ${name}`,
    about,
    text(`holdfast ${name} ${operands.text}`.trimEnd()),
    ...(own.length > 0 ? [optionTable(own)] : []),
    'Examples:',
    text(examples.flatMap(([line, what]) => [`# ${what}`, line]).join('\n')),
  ];
}

const optionTable = (names: readonly OptionName[]): string =>
  table(
    'option',
    'meaning',
    names.map((name) => [`\`${optionHead(name)}\``, OPTIONS[name].text]),
  );

function table(left: string, right: string, rows: readonly (readonly [string, string])[]): string {
  const cell = (content: string): string => content.replaceAll('|', '\\|');
  const lines = rows.map(([a, b]) => `| ${cell(a)} | ${cell(b)} |`);
  return [`| ${left} | ${right} |`, '| --- | --- |', ...lines].join('\n');
}

const text = (content: string): string => ['```text', content, '```'].join('\n');
