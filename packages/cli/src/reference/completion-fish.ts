/** Completion for fish: a line per command and option. */
import type { Command } from '../command.js';
import { completed, type Flag } from './completed.js';

export function fishCompletion(commands: readonly Command[]): string {
  const { alone, all } = completed(commands);
  const lines = all.flatMap(({ name, summary, flags, choices }) => {
    const inside = quote(`__holdfast_is ${name}`);
    return [
      `complete -c holdfast -n '__holdfast_is' -a ${name} -d ${quote(summary)}`,
      ...flags.map((flag) => `complete -c holdfast -n ${inside} ${flagText(flag)}`),
      ...choices.map((word) => `complete -c holdfast -n ${inside} -a ${word}`),
    ];
  });
  const values = [...new Set([...alone, ...all.flatMap((command) => command.flags)].flatMap(withValue))];
  return `# Completion of holdfast for fish. Once: holdfast completion fish > ~/.config/fish/completions/holdfast.fish
# Whether the command is NAME; without NAME, whether there is none yet.
function __holdfast_is
    set -l words (commandline -opc)
    contains -- -- $words; and return 1
    set -l skip 1
    for word in $words
        if test $skip -gt 0
            set skip 0
        else if contains -- $word ${values.join(' ')}
            set skip 1
        else if not string match -q -- '-*' $word
            test "$word" = "$argv[1]"
            return
        end
    end
    test -z "$argv[1]"
end
# What comes after -- is completed as a command line of its own.
function __holdfast_program
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words); or return 1
    set -l line $words[(math $at + 1)..-1] (commandline -ct)
    complete -C (string join ' ' -- $line)
end
complete -c holdfast -f
complete -c holdfast -n 'contains -- -- (commandline -opc)' -a '(__holdfast_program)'
${alone.map((flag) => `complete -c holdfast -n '__holdfast_is' ${flagText(flag)}`).join('\n')}
${lines.join('\n')}
`;
}

const withValue = ({ name, value }: Flag): string[] => (value === undefined ? [] : [`--${name}`]);

function flagText({ name, short, value, choices, text }: Flag): string {
  const letter = short === undefined ? '' : `-s ${short} `;
  const files = value === 'FILE' ? ' -r -F' : ' -x';
  const argument = value === undefined ? '' : files;
  const words = choices.length > 0 ? ` -a ${quote(choices.join(' '))}` : '';
  return `${letter}-l ${name}${argument}${words} -d ${quote(text)}`;
}

function quote(text: string): string {
  return `'${text.replace(/[\\']/g, '\\$&')}'`;
}
