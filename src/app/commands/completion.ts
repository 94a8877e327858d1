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

/** Of the commands that take no options of the gateway: what completes a word that begins with a hyphen. */
const flagsByCommand = commandNames
  .filter((name) => !commands[name].takesOptions)
  .map((name) => [name, [...commands[name].flags.map(({ flag }) => flag), '--help'].join(' ')] as const);

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
    case "\${COMP_WORDS[1]}" in
${flagsByCommand.map(([name, flags]) => `      ${name}) COMPREPLY=( $(compgen -W "${flags}" -- "$current") ) ;;`).join('\n')}
      *) COMPREPLY=( $(compgen -W "${allFlags.join(' ')}" -- "$current") ) ;;
    esac
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
  const others = ownFlags.map((flag) => {
    const { value, description } = commandFlags.get(flag) ?? {};
    const [told = ''] = description?.split(/(?<=\.) /) ?? [];
    const more = value === undefined ? '' : value === '<file>' ? ' -r' : ' -x';
    return `complete -c mcp-gangway -l ${flag.slice(2)}${told === '' ? '' : ` -d '${told}'`}${more}`;
  });
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
