// src/config/help: the texts of --help.

import { docsPage } from '../../util/docs-page.ts';
import type { Option } from '../options/option-kinds.ts';
import { environmentNameOf, flagOf, flagsOf, options } from '../options/option-names.ts';
import { gatewayLeaves, serverLeaves } from '../options/options.ts';
import { forms, type HelpTopic } from '../sources/command-line.ts';

const columns = 80;
const indent = 21;

/** Renders the text of `--help` for a topic, 80 columns wide. Lines with a URL may be longer. */
export const renderHelp = (topic: HelpTopic = 'gateway'): string => `${texts[topic]().join('\n')}\n`;

const texts: Readonly<Record<HelpTopic, () => readonly string[]>> = {
  gateway: onGateway,
  all: onAll,
  check: onCheck,
  health: onHealth,
  key: onKey,
  config: onConfig,
  completion: onCompletion,
};

const otherSources = [
  `Each option is also a variable, such as ${environmentNameOf('timeouts.sessionIdle')}, and a key of the`,
  `file, such as timeouts.sessionIdle. Times and sizes have units: 30m, 4MiB.`,
];

/** The forms, the main options and an example, on one screen of 40 lines. */
function onGateway(): readonly string[] {
  const [single, remote, file] = forms;
  return [
    'Serves MCP servers at Streamable HTTP endpoints. Usage (serve is the default):',
    `  ${single.padEnd(43)} one STDIO server`,
    `  ${file.padEnd(43)} several servers, at /<name>/mcp`,
    `  ${remote.padEnd(43)} one remote server`,
    `  ${'mcp-gangway check [same arguments]'.padEnd(43)} check each server, then exit`,
    `  ${'mcp-gangway health [same arguments]'.padEnd(43)} check a running gateway`,
    `  ${'mcp-gangway key <name>'.padEnd(43)} create an API key`,
    `  ${'mcp-gangway config print | schema'.padEnd(43)} show the configuration`,
    `  ${'mcp-gangway completion bash | zsh | fish'.padEnd(43)} complete commands in a shell`,
    'Main options:',
    ...row('--config', 'Configuration file with servers and options.'),
    ...row('--name', 'Name of the only server. Default: from its command.'),
    ...[...options].flatMap(([path, option]) => (option.short === undefined ? [] : summarize(path, option))),
    ...row('--open', 'Open the status page in the browser when the gateway has started.'),
    ...row('-h, --help', 'Print this help; --help all: all options; -v: version.'),
    ...otherSources,
    'Example: mcp-gangway -- npx -y @modelcontextprotocol/server-everything',
    `Docs: ${docsPage('README.md')}`,
  ];
}

function onAll(): readonly string[] {
  const each = (leaves: ReadonlyMap<string, Option>, areAdvanced: boolean): readonly string[] =>
    [...leaves]
      .filter(([, { isAdvanced = false }]) => isAdvanced === areAdvanced)
      .flatMap(([path, option]) => describe(path, option));
  return [
    ...otherSources,
    '',
    'Gateway options:',
    ...row('--config', 'Configuration file with servers and options.'),
    ...row('--name', 'Name of the only server. By default, the gateway derives it from the command.'),
    ...row('--open', 'Open the status page in the browser of this machine when the gateway has started.'),
    ...each(gatewayLeaves, false),
    '',
    'Server options. In the file, each server can set its own values:',
    ...each(serverLeaves, false),
    '',
    'Advanced options, which rarely need a change:',
    ...each(gatewayLeaves, true),
    ...each(serverLeaves, true),
    '',
    'Allowed values and the format of the file:',
    `  ${docsPage('reference/configuration.md')}`,
  ];
}

function onCheck(): readonly string[] {
  return [
    'Starts each server as the gateway would, lists its features and stops it.',
    'Also checks Redis and the configuration, and says how to fix each problem.',
    '',
    'Usage:',
    ...forms.map((form) => `  ${form.replace('mcp-gangway', 'mcp-gangway check')}`),
    '',
    'Options:',
    ...row('--config-only', 'Check only the configuration, and start nothing. With --json, no servers are listed.'),
    ...row('--json', 'Print one JSON object instead of text.'),
    '  and the options of the gateway: mcp-gangway --help',
    '',
    'Exit code: 0 if everything works, 1 if a server or Redis does not, 2 if the',
    'configuration is invalid.',
    '',
    `Docs: ${docsPage('health.md')}`,
  ];
}

function onHealth(): readonly string[] {
  return [
    'Checks whether a running gateway is healthy, for example in a container.',
    '',
    'Usage:',
    '  mcp-gangway health [the options of the gateway]',
    '',
    'In a container whose main process is the gateway, no options are needed.',
    '',
    'Options:',
    ...row('--ready', 'Check whether the gateway accepts new sessions (/readyz), not only whether it runs (/healthz).'),
    '',
    'Exit code: 0 if healthy, 1 if not, 2 if the configuration is invalid.',
    '',
    `Docs: ${docsPage('health.md')}`,
  ];
}

function onKey(): readonly string[] {
  return [
    'Creates an API key for a client.',
    '',
    'Usage:',
    '  mcp-gangway key <name>               the user of the key, such as alice',
    '  mcp-gangway key <name> --add <file>  also add the key to a key file',
    '',
    'Options:',
    ...row('--add <file>', 'Add the hash of the key to this key file. The file is created if it does not exist.'),
    ...row(
      '--scope <scope>',
      'What the key may be used for, such as gangway:status; repeatable. Without a scope, every server and tool, but not the status page.',
    ),
    ...row('--expires <time>', 'When the key ends: a time from now, such as 90d, or 2027-01-31T00:00:00Z.'),
    '',
    'With --add, adds the hash of the key to the file, and prints the key for alice.',
    `Start the gateway with ${flagOf('auth.apiKeysFile')} <file>. Only its owner can read the file.`,
    '',
    'Without --add, prints the key, which is shown only once, its entry for the',
    `${flagOf('auth.apiKeysFile')} file (a JSON list), and its entry for GANGWAY_API_KEYS.`,
    'That variable has no scopes and times, so a key with them lacks this entry.',
    'The entries contain a hash of the key, not the key itself.',
    '',
    `Docs: ${docsPage('authentication.md')}`,
  ];
}

function onConfig(): readonly string[] {
  return [
    'Shows the configuration.',
    '',
    'Usage:',
    '  mcp-gangway config print [the options of the gateway]',
    '  mcp-gangway config schema',
    '',
    'print: the options in use, and where each one comes from. Secrets are masked.',
    'schema: the JSON Schema of the configuration file, for editors.',
    '',
    `Docs: ${docsPage('reference/configuration.md')}`,
  ];
}

function onCompletion(): readonly string[] {
  return [
    'Prints a script that completes commands and options in a shell.',
    '',
    'Usage:',
    '  bash: source <(mcp-gangway completion bash)',
    '  zsh:  source <(mcp-gangway completion zsh)',
    '  fish: mcp-gangway completion fish | source',
    '',
    `Docs: ${docsPage('reference/command-line.md')}`,
  ];
}

function describe(path: string, option: Option): string[] {
  return row(flagsOf(path)[0], option.description + defaultText(option));
}

function summarize(path: string, option: Option): string[] {
  return row(flagsOf(path)[0], (option.summary ?? option.description) + defaultText(option));
}

function defaultText({ default: value, format }: Option): string {
  if (typeof value === 'number') return ` [${format?.(value) ?? value}]`;
  return typeof value === 'string' ? ` [${value}]` : '';
}

/** A name and its wrapped description. The description of a long name begins on the next line. */
function row(name: string, description: string): string[] {
  const lines = [''];
  for (const word of description.split(' ')) {
    const longer = `${lines.at(-1)} ${word}`.trimStart();
    if (longer.length <= columns - indent) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  const isLong = name.length + 2 >= indent;
  const described = lines.map((line, index) => (index === 0 && !isLong ? `  ${name}` : '').padEnd(indent) + line);
  return isLong ? [`  ${name}`, ...described] : described;
}
