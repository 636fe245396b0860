/** Completion for bash. It needs only bash; if the package bash-completion is loaded, that completes COMMAND. */
import type { Command } from '../command.js';
import { completed, type Flag } from './completed.js';

export function bashCompletion(commands: readonly Command[]): string {
  const { alone, all } = completed(commands);
  const cases = (select: (command: (typeof all)[number]) => readonly string[]) =>
    all
      .map((command) => [command.name, select(command)] as const)
      .filter(([, words]) => words.length > 0)
      .map(([name, words]) => `    ${name}) words='${words.join(' ')}' ;;`);
  const flags = [...alone, ...all.flatMap((command) => command.flags)];
  return `# Completion of holdfast for bash. In ~/.bashrc: source <(holdfast completion bash)
_holdfast() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD - 1]}
  local command='' words='' at
  COMPREPLY=()
  for ((at = 1; at < COMP_CWORD; at++)); do
    case \${COMP_WORDS[at]} in
      --)
        if declare -F _command_offset >/dev/null; then
          _command_offset $((at + 1))
        elif [[ $prev == -- ]]; then
          COMPREPLY=($(compgen -c -- "$cur"))
        else
          compopt -o filenames
          COMPREPLY=($(compgen -f -- "$cur"))
        fi
        return
        ;;
      ${pattern(flags.filter(({ value }) => value !== undefined))})
        # Its value is several words for bash where it has colons or equals signs.
        ((at++))
        [[ \${COMP_WORDS[at]} == = ]] && ((at++))
        while [[ \${COMP_WORDS[at + 1]} == [:=]* ]]; do ((at += 2)); done
        ;;
      -*) ;;
      *) [[ $command ]] || command=\${COMP_WORDS[at]} ;;
    esac
  done
  case $prev in
    ${pattern(flags.filter(({ value }) => value === 'FILE'))})
      compopt -o filenames
      COMPREPLY=($(compgen -f -- "$cur"))
      return
      ;;
${choiceCases(flags)}
    ${pattern(flags.filter(({ value }) => value !== undefined))}) return ;;
  esac
  case $command in
    '') words='${alone.map(({ name }) => `--${name}`).join(' ')}' ;;
${cases(({ flags: own }) => own.map(({ name }) => `--${name}`)).join('\n')}
  esac
  if [[ $cur != -* ]]; then
    words=''
    case $command in
      '') words='${all.map(({ name }) => name).join(' ')}' ;;
${cases(({ choices }) => choices)
  .map((line) => `  ${line}`)
  .join('\n')}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -F _holdfast holdfast
`;
}

function pattern(flags: readonly Flag[]): string {
  return [...new Set(flags.map(({ name }) => `--${name}`))].join(' | ');
}

function choiceCases(flags: readonly Flag[]): string {
  const lines = flags
    .filter(({ choices }) => choices.length > 0)
    .map(
      ({ name, choices }) =>
        `    --${name}) COMPREPLY=($(compgen -W '${choices.join(' ')}' -- "$cur")); return ;;`,
    );
  return [...new Set(lines)].join('\n');
}
