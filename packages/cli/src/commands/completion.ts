/** `holdfast completion`: the completion script of a shell. */
import type { Command } from '../command.js';
import { EXIT, usageFailure } from '../failure.js';
import { quote } from '../printing/terminal.js';
import { bashCompletion } from '../reference/completion-bash.js';
import { fishCompletion } from '../reference/completion-fish.js';
import { zshCompletion } from '../reference/completion-zsh.js';

const SHELLS = new Map([
  ['bash', bashCompletion],
  ['zsh', zshCompletion],
  ['fish', fishCompletion],
]);
const NAMES = [...SHELLS.keys()];

export const completion: Command = {
  name: 'completion',
  operands: { min: 1, max: 1, text: 'SHELL', choices: NAMES },
  options: [],
  without: ['store', 'namespace', 'json'],
  summary: 'print the completion script of a shell: bash, zsh or fish',
  about:
    'Prints the completion script of SHELL, which is bash, zsh or fish: commands, options, and the values of options.',
  examples: [
    ['source <(holdfast completion bash)', 'in ~/.bashrc'],
    ['source <(holdfast completion zsh)', 'in ~/.zshrc, after compinit'],
    ['holdfast completion fish > ~/.config/fish/completions/holdfast.fish', 'once'],
  ],

  async run({ operands }, terminal, commands) {
    const [shell = ''] = operands;
    const script = SHELLS.get(shell);
    if (!script) throw usageFailure(`no completion for ${quote(shell)}; shells are ${NAMES.join(', ')}`);
    terminal.raw(script(commands));
    return EXIT.ok;
  },
};
