/** `holdfast man`: the manual page. */
import type { Command } from '../command.js';
import { EXIT } from '../failure.js';
import { manPage } from '../reference/man-page.js';
import { version } from '../version.js';

export const man: Command = {
  name: 'man',
  operands: { min: 0, max: 0, text: '' },
  options: [],
  without: ['store', 'namespace', 'json'],
  summary: 'print the manual page, for man -l',
  about:
    'Prints the manual page holdfast(1), for systems where `man holdfast` does not find the one of the package.',
  examples: [
    ['holdfast man | man -l -', 'read it'],
    ['holdfast man > /usr/local/share/man/man1/holdfast.1', 'install it'],
  ],

  async run(_invocation, terminal, commands) {
    terminal.raw(manPage(commands, version()));
    return EXIT.ok;
  },
};
