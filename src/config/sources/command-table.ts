import { docsPage } from '../../core/util/docs-page.ts';

/** The forms in which the command line names servers, for `--help` and for the fault when it names none. */
export const forms = [
  'mcp-gangway [options] -- <command> [args…]',
  'mcp-gangway [options] <package> [args…]',
  'mcp-gangway [options] <url>',
  'mcp-gangway [options] --config <file>',
] as const;

/** A flag of a command. It is no option of the tree, and has no variable. */
export interface CommandFlag {
  readonly flag: string;
  /** What its value is; undefined for a flag without a value. */
  readonly value: string | undefined;
  readonly description: string;
  readonly isRepeatable: boolean;
}

function flagOf(usage: string, description: string): CommandFlag {
  const [flag = '', value] = usage.split(' ');
  return { flag, value, description, isRepeatable: description.includes('repeatable') };
}

/** What a command takes, and its help. */
export interface CommandFacts {
  /** True for a command that takes the options of the gateway. */
  readonly takesOptions: boolean;
  /** The words of which one must follow. */
  readonly words?: readonly string[];
  /** The word that follows, for faults; undefined for a command that can stand anywhere before `--`. */
  readonly example?: string;
  /** What the words after that one name; undefined if there are none. */
  readonly operands?: string;
  readonly flags: readonly CommandFlag[];
  /** How the overview and the manual page show it; absent if the forms do. */
  readonly overview?: readonly [usage: string, summary: string];
  /** The text of its help, with `{flags}` in the place of its flags. */
  readonly help?: string;
}

/** The flags that name servers, of all commands that take options. */
export const serverFlags: readonly CommandFlag[] = [
  flagOf('--config <file>', 'Configuration file with servers and options.'),
  flagOf('--name <name>', 'Name of the only server. Default: from its command.'),
];

const fileFlag = flagOf(
  '--config <file>',
  'The configuration file of the gateway. Default: the file of the variable GANGWAY_CONFIG.',
);

/** The commands of the program. */
export const commands = {
  serve: {
    takesOptions: true,
    flags: [flagOf('--open', 'Open the status page in the browser at the start.')],
  },
  check: {
    takesOptions: true,
    flags: [
      flagOf(
        '--config-only',
        'Check only the configuration and its pin files, and start nothing. With --json, no servers are listed.',
      ),
      flagOf('--json', 'Print one JSON object instead of text.'),
    ],
    overview: ['check | health [same arguments]', 'check servers; a running gateway'],
    help: `Starts each server as the gateway would, lists its features and stops it.
Also checks Redis and the configuration, and says how to fix each problem.

Usage:
${forms.map((form) => `  ${form.replace('mcp-gangway', 'mcp-gangway check')}`).join('\n')}

Options:
{flags}
  and the options of the gateway: mcp-gangway --help

Exit code: 0 if everything works, 1 if a server or Redis does not, 2 if the
configuration is invalid.

Docs: ${docsPage('health.md')}`,
  },
  connect: {
    takesOptions: true,
    flags: [],
    overview: ['connect <url>', 'from STDIO to a server at a URL'],
    help: `Connects a client that only starts programs to a server at a URL. The client
speaks STDIO with this program. The server can speak Streamable HTTP, HTTP+SSE
or WebSocket, of any revision. Lost connections are opened again, and streams
resume.

Usage:
  mcp-gangway connect [options] <url>

Options:
  --header 'Name: value'  header for the server; repeatable. The variable
                          GANGWAY_HEADER keeps a token off the command line.
  and the options of a server: mcp-gangway --help all

Nothing listens on a port. The log is on stderr. Exit code: 0 if the client has
left, 1 if its session could not start or go on, 2 if the configuration is
invalid.

Docs: ${docsPage('recipes/connect.md')}`,
  },
  add: {
    takesOptions: true,
    example: 'git',
    flags: [fileFlag, flagOf('--replace', 'Replace the server with this name, if there is one.')],
    overview: ['add | remove | list | upgrade | pin …', 'servers of a file, packages'],
    help: `Adds a server to the folder servers.d beside the configuration file. A gateway
that runs with this file serves it a second later.

Usage:
  mcp-gangway add <name> [options] -- <command> [args…]
  mcp-gangway add <name> [options] <url>
  mcp-gangway add <name> [options] <package>

Options:
{flags}
  and the options of a server, such as --env NAME=VALUE: mcp-gangway --help all

The command first checks the whole configuration with the new server, as
check --config-only does. If something is wrong, it changes nothing. A missing
configuration file is created.

Docs: ${docsPage('reference/configuration.md')}`,
  },
  remove: {
    takesOptions: false,
    example: 'git',
    flags: [fileFlag],
    help: `Removes a server from the folder servers.d beside the configuration file. A
gateway that runs with this file ends it a second later.

Usage:
  mcp-gangway remove <name> [options]

Options:
{flags}

The command first checks the configuration without the server. If something is
wrong, it changes nothing.

Docs: ${docsPage('reference/configuration.md')}`,
  },
  list: {
    takesOptions: false,
    flags: [fileFlag, flagOf('--json', 'Print a JSON list instead of text.')],
    help: `Lists the servers of a configuration file, with their command or URL, and the
file that has each.

Usage:
  mcp-gangway list [options]

Options:
{flags}

Docs: ${docsPage('reference/configuration.md')}`,
  },
  pin: {
    takesOptions: true,
    example: 'git',
    flags: [flagOf('--check', 'Write nothing. The exit code is 1 if a tool is new or changed.')],
    help: `Writes the pin file of a server or view. Clients then see and call only tools
whose definition stays as it is now.

Usage:
  mcp-gangway pin <name> --config <file>

The option pin of the server names the file. The command starts the server, or
the servers of the view, and prints what is different from the file before:
new and changed tools with their whole text, and removed ones. Review them, best
with --check before the file is written. A gateway that runs uses the new file a
second later.

Options:
{flags}

Exit code: 0 if the file was written or, with --check, no tool is new or changed;
1 if the server does not start, or --check found such a tool; 2 if the
configuration is invalid.

Docs: ${docsPage('tools.md')}`,
  },
  upgrade: {
    takesOptions: true,
    example: '@scope/name',
    flags: [],
    help: `Installs the newest version of a package, or of the packages of a
configuration file.

Usage:
  mcp-gangway upgrade <package>               such as npx:name or uvx:name
  mcp-gangway upgrade --config <file>         all packages of the file
  mcp-gangway upgrade <name> --config <file>  the package of one server

Until then, a package keeps the version that was installed first. A running
gateway starts its next processes with the new version. Running processes keep
the old one.

Docs: ${docsPage('recipes/packages.md')}`,
  },
  health: {
    takesOptions: true,
    flags: [
      flagOf(
        '--ready',
        'Check whether the gateway accepts new sessions (/readyz), not only whether it runs (/healthz).',
      ),
    ],
    help: `Checks whether a running gateway is healthy, for example in a container.

Usage:
  mcp-gangway health [the options of the gateway]

In a container whose main process is the gateway, no options are needed.

Options:
{flags}

Exit code: 0 if healthy, 1 if not, 2 if the configuration is invalid.

Docs: ${docsPage('health.md')}`,
  },
  key: {
    takesOptions: false,
    example: 'alice',
    flags: [
      flagOf('--add <file>', 'Add the hash of the key to this key file. The file is created if it does not exist.'),
      flagOf(
        '--scope <scope>',
        'What the key may be used for, such as gangway:status; repeatable. Without a scope, every server and tool, but not the status page.',
      ),
      flagOf('--expires <time>', 'When the key ends: a time from now, such as 90d, or 2027-01-31T00:00:00Z.'),
    ],
    overview: ['key <name> | audit verify <file>…', 'create a key, check audit files'],
    help: `Creates an API key for a client.

Usage:
  mcp-gangway key <name>               the user of the key, such as alice
  mcp-gangway key <name> --add <file>  also add the key to a key file

Options:
{flags}

With --add, the command adds the hash of the key to the file. It prints the
header with the key, which is shown only once. Only the owner of a new file can
read it. Start the gateway with --api-keys-file <file>.

Without --add, the command prints the key, which is shown only once. It also
prints the entry of the key for the file (a JSON list). If the key has neither
scopes nor a time, it also prints the entry for the variable GANGWAY_API_KEYS.
The entries contain a hash of the key, not the key itself.

Docs: ${docsPage('authentication.md')}`,
  },
  audit: {
    takesOptions: false,
    words: ['verify'],
    example: 'verify',
    operands: 'file',
    flags: [flagOf('--last <hash>', 'The hash that an earlier check has printed: its line must still be there.')],
    help: `Checks that no record of an audit log was changed, removed or added.

Usage:
  mcp-gangway audit verify <file>…   rotated files in their order, the oldest first

Options:
{flags}

The log must have been written with --observe.auditChain. The command names the
first line that does not follow from the line before. It prints the hash of the
last line. Nothing follows the last line, so only this hash shows that the last
line was changed, or that the last lines were removed: keep it elsewhere, and
give it to the next check with --last.

Exit code: 0 if the chain is whole, 1 if it is broken or a file cannot be read,
2 if the arguments are wrong.

Docs: ${docsPage('audit.md')}`,
  },
  config: {
    takesOptions: true,
    words: ['print', 'schema'],
    example: 'print',
    flags: [],
    overview: ['config print | completion …', 'show settings; complete commands'],
    help: `Shows the configuration.

Usage:
  mcp-gangway config print [the options of the gateway]
  mcp-gangway config schema

print: the options in use, and where each one comes from. Secrets are masked.
schema: the JSON Schema of the configuration file, for editors.

Docs: ${docsPage('reference/configuration.md')}`,
  },
  completion: {
    takesOptions: false,
    words: ['bash', 'zsh', 'fish'],
    example: 'bash',
    flags: [],
    help: `Prints a script that completes commands and options in a shell.

Usage:
  bash: source <(mcp-gangway completion bash)
  zsh:  source <(mcp-gangway completion zsh)
  fish: mcp-gangway completion fish | source

Docs: ${docsPage('reference/command-line.md')}`,
  },
} as const satisfies Readonly<Record<string, CommandFacts>>;

export const commandNames = Object.keys(commands) as (keyof typeof commands)[];

/** A command of the program; `help` and `version` are flags. */
export type Command = keyof typeof commands | 'help' | 'version';

/** The facts of a command; undefined for `help` and `version`. */
export const factsOf = (command: Command): CommandFacts | undefined =>
  command === 'help' || command === 'version' ? undefined : commands[command];

/** All flags of commands. Of flags with the same name, the first command's describes it. */
export const commandFlags: ReadonlyMap<string, CommandFlag> = new Map(
  [...serverFlags, ...commandNames.flatMap((name) => commands[name].flags)]
    .toReversed()
    .map((each) => [each.flag, each]),
);

/** The words that can follow `--help`: all options, or a command. */
export const helpTopics = [
  'all',
  'check',
  'connect',
  'config',
  'add',
  'remove',
  'list',
  'pin',
  'upgrade',
  'health',
  'key',
  'audit',
  'completion',
] as const;

/** A subject of help: the gateway in short, or one of the topics. */
export type HelpTopic = 'gateway' | (typeof helpTopics)[number];
