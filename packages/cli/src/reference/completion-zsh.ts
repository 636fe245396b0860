/** Completion for zsh, by its own `_arguments`. */
import type { Command } from '../command.js';
import { type CompletedCommand, completed, type Flag } from './completed.js';

export function zshCompletion(commands: readonly Command[]): string {
  const { alone, all } = completed(commands);
  const described = all.map(({ name, summary }) => `        ${quote(`${name}:${summary}`)}`);
  return `#compdef holdfast
# Completion of holdfast for zsh. In ~/.zshrc, after compinit: source <(holdfast completion zsh)
_holdfast() {
  local curcontext="$curcontext" state line
  local -a commands
  typeset -A opt_args
  # What comes after -- is a command line of its own.
  local dashes=\${words[(i)--]}
  if ((dashes < CURRENT)); then
    shift $dashes words
    ((CURRENT -= dashes))
    _normal
    return
  fi
  _arguments -C \\
${alone.map(specOf).join('\n')}
    '1: :->command' \\
    '*:: :->arguments' && return
  case $state in
    command)
      commands=(
${described.join('\n')}
      )
      _describe -t commands command commands
      ;;
    arguments)
      case $words[1] in
${all.map(caseOf).join('\n')}
      esac
      ;;
  esac
}
if [[ $funcstack[1] == _holdfast ]]; then
  _holdfast "$@"
else
  compdef _holdfast holdfast
fi
`;
}

function caseOf(command: CompletedCommand): string {
  const { name, flags, choices, operand } = command;
  const operands = [
    ...(choices.length > 0 ? [`    ${quote(`1:action:(${choices.join(' ')})`)}`] : []),
    ...(choices.length === 0 && operand !== null ? [`    ${quote(`1:${operand}: `)}`] : []),
  ];
  const lines = [...flags.map(specOf).map((line) => line.replace(/ \\$/, '')), ...operands];
  return `        ${name})
          _arguments \\
${lines.map((line) => `        ${line}`).join(' \\\n')}
          ;;`;
}

/** `--ttl=[how long]:TIME: `, one argument of `_arguments` per line. */
function specOf({ name, short, value, choices, repeats, text }: Flag): string {
  const star = repeats ? '*' : '';
  const title = `[${text.replace(/[[\]:\\]/g, '\\$&')}]`;
  const action = choices.length > 0 ? `(${choices.join(' ')})` : value === 'FILE' ? '_files' : ' ';
  const argument = value === undefined ? '' : `:${value}:${action}`;
  const equals = value === undefined ? '' : '=';
  if (short === undefined) return `    ${quote(`${star}--${name}${equals}${title}${argument}`)} \\`;
  return `    '(-${short} --${name})'{-${short},--${name}}${quote(`${title}${argument}`)} \\`;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
