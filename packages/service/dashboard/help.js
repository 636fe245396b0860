/** What the keyboard does. */
import { make } from './dom.js';

const KEYS = {
  '/': 'search',
  '↓ ↑': 'next and previous lock',
  Enter: 'open or close a lock',
  Esc: 'close, or go back',
  '?': 'this help',
};

export function makeHelp() {
  const title = make('h2', '', 'Keyboard');
  title.id = 'help-title';
  const close = make('button', '', 'Close');
  close.type = 'button';
  const lines = Object.entries(KEYS).flatMap(([key, text]) => [make('dt', '', key), make('dd', '', text)]);
  const help = make('dialog', '', title, make('dl', '', ...lines), make('div', 'buttons', close));
  help.id = 'help';
  help.setAttribute('aria-labelledby', title.id);
  close.addEventListener('click', () => help.close());
  document.body.append(help);
  return help;
}
