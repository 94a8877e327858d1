import { firstSentenceOf } from '../../config/options/option-kinds.ts';
import { flagsOf, options } from '../../config/options/option-names.ts';
import { commandFlags, commandNames, commands } from '../../config/sources/command-table.ts';
import { ownFlags } from '../../config/sources/known-flags.ts';

const allFlags = [...ownFlags, ...[...options.keys()].flatMap(flagsOf)];

/** Options whose value is a file or a folder. */
const fileFlags = [
  ...[...commandFlags.values()].flatMap(({ flag, value }) => (value === '<file>' ? [flag] : [])),
  ...[...options].flatMap(([path, { isFile }]) => (isFile === true ? flagsOf(path) : [])),
];

/** The words that can follow each command. */
const wordsByCommand = [
  ['config', commands.config.words.join(' ')],
  ['completion', commands.completion.words.join(' ')],
] as const;

/** Renders the completion script of a shell. A script contains all names, so that it starts no program. */
export function renderCompletion(shell: string): string {
  if (shell === 'fish') return renderFish();
  const cases = [...options].flatMap(([path, { choices }]) =>
    choices === undefined
      ? []
      : [`    ${flagsOf(path).join('|')}) COMPREPLY=( $(compgen -W "${choices.join(' ')}" -- "$current") ); return ;;`],
  );
  const bash = `_mcp_gangway() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}"
  local index
  for (( index = 1; index < COMP_CWORD; index++ )); do
    [[ "\${COMP_WORDS[index]}" == "--" ]] && { compopt -o default 2>/dev/null; return; }
  done
  case "$previous" in
    ${fileFlags.join('|')}) COMPREPLY=( $(compgen -f -- "$current") ); return ;;
${cases.join('\n')}
${wordsByCommand.map(([name, words]) => `    ${name}) COMPREPLY=( $(compgen -W "${words}" -- "$current") ); return ;;`).join('\n')}
    --help) COMPREPLY=( $(compgen -W "all ${commandNames.join(' ')}" -- "$current") ); return ;;
  esac
  if [[ "$current" == -* ]]; then
    COMPREPLY=( $(compgen -W "${allFlags.join(' ')}" -- "$current") )
  elif (( COMP_CWORD == 1 )); then
    COMPREPLY=( $(compgen -W "${commandNames.join(' ')}" -- "$current") )
  fi
}
complete -o bashdefault -F _mcp_gangway mcp-gangway
`;
  return shell === 'bash' ? bash : `autoload -U +X bashcompinit && bashcompinit\n${bash}`;
}

function renderFish(): string {
  const own = [...options].map(([path, option]) => {
    const { choices, isFile } = option;
    const more = choices !== undefined ? ` -x -a '${choices.join(' ')}'` : isFile === true ? ' -r' : ' -x';
    return `complete -c mcp-gangway -l '${flagsOf(path)[0].slice(2)}' -d '${firstSentenceOf(option).replaceAll("'", "\\'")}'${more}`;
  });
  const others = ownFlags.map(
    (flag) => `complete -c mcp-gangway -l ${flag.slice(2)}${fileFlags.includes(flag) ? ' -r' : ''}`,
  );
  return [
    'complete -c mcp-gangway -f',
    `complete -c mcp-gangway -n __fish_use_subcommand -a '${commandNames.join(' ')}'`,
    ...wordsByCommand.map(
      ([name, words]) => `complete -c mcp-gangway -n '__fish_seen_subcommand_from ${name}' -a '${words}'`,
    ),
    ...others,
    ...own,
    '',
  ].join('\n');
}
