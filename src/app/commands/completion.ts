import { flagOf, flagsOf } from '../../config/options/option-names.ts';
import { globalOptions, type OptionTable, serverOptions } from '../../config/options/options.ts';

const options: OptionTable = { ...globalOptions, ...serverOptions };
const commands = ['serve', 'check', 'config', 'health', 'key', 'completion'];
const otherFlags = [
  '--config',
  '--name',
  '--json',
  '--config-only',
  '--ready',
  '--add',
  '--scope',
  '--expires',
  '--help',
  '--version',
];
const allFlags = [...otherFlags, ...Object.keys(options).flatMap((key) => flagsOf(key))];

/** Options whose value is a file or a folder. */
const fileFlags = [
  '--config',
  '--add',
  ...Object.keys(options)
    .filter(isFile)
    .flatMap((key) => flagsOf(key)),
];

function isFile(key: string): boolean {
  return /(?:Cert|Key|Ca|File)$|^cwd$/.test(key) && key !== 'stateKey';
}

/** The values of options that have few. */
const choices = [
  ['era', 'auto legacy modern'],
  ['share', 'auto session user all request'],
  ['transport', 'auto http sse'],
  ['logFormat', 'auto json pretty'],
  ['logLevel', 'fatal error warn info debug trace silent'],
] as const;

/** Renders the completion script of a shell. A script contains all names, so that it starts no program. */
export function renderCompletion(shell: string): string {
  if (shell === 'fish') return renderFish();
  const cases = choices.flatMap(([key, values]) => [
    `    ${flagsOf(key).join('|')}) COMPREPLY=( $(compgen -W "${values}" -- "$current") ); return ;;`,
  ]);
  const bash = `_mcp_gangway() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}"
  local index
  for (( index = 1; index < COMP_CWORD; index++ )); do
    [[ "\${COMP_WORDS[index]}" == "--" ]] && { compopt -o default 2>/dev/null; return; }
  done
  case "$previous" in
    ${fileFlags.join('|')}) COMPREPLY=( $(compgen -f -- "$current") ); return ;;
${cases.join('\n')}
    config) COMPREPLY=( $(compgen -W "print schema" -- "$current") ); return ;;
    completion) COMPREPLY=( $(compgen -W "bash zsh fish" -- "$current") ); return ;;
    --help) COMPREPLY=( $(compgen -W "all ${commands.join(' ')}" -- "$current") ); return ;;
  esac
  if [[ "$current" == -* ]]; then
    COMPREPLY=( $(compgen -W "${allFlags.join(' ')}" -- "$current") )
  elif (( COMP_CWORD == 1 )); then
    COMPREPLY=( $(compgen -W "${commands.join(' ')}" -- "$current") )
  fi
}
complete -o bashdefault -F _mcp_gangway mcp-gangway
`;
  return shell === 'bash' ? bash : `autoload -U +X bashcompinit && bashcompinit\n${bash}`;
}

function renderFish(): string {
  const short = Object.entries(options).map(([key, { description }]) => {
    const [first = ''] = description.split(/(?<=\.) /);
    const values = choices.find(([name]) => name === key)?.[1];
    const more = values !== undefined ? ` -x -a '${values}'` : isFile(key) ? ' -r' : ' -x';
    return `complete -c mcp-gangway -l '${flagOf(key).slice(2)}' -d '${first.replaceAll("'", "\\'")}'${more}`;
  });
  const own = otherFlags.map(
    (flag) => `complete -c mcp-gangway -l ${flag.slice(2)}${fileFlags.includes(flag) ? ' -r' : ''}`,
  );
  return [
    'complete -c mcp-gangway -f',
    `complete -c mcp-gangway -n __fish_use_subcommand -a '${commands.join(' ')}'`,
    "complete -c mcp-gangway -n '__fish_seen_subcommand_from config' -a 'print schema'",
    "complete -c mcp-gangway -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'",
    ...own,
    ...short,
    '',
  ].join('\n');
}
