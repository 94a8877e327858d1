// src/config/help: the texts of --help.

import { docsPage } from '../../util/docs-page.ts';
import type { Option } from '../options/option-kinds.ts';
import { environmentNameOf, flagOf } from '../options/option-names.ts';
import { globalOptions, serverOptions } from '../options/options.ts';
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
};

type Options = readonly (readonly [string, Option])[];

const otherSources = [
  `Each option can also be an environment variable, such as ${environmentNameOf('maxSessions')},`,
  'or a key of the configuration file, such as maxSessions.',
];

/** The forms, the main options and two examples, on one screen of 40 lines. */
function onGateway(): readonly string[] {
  const options: Options = Object.entries({ ...globalOptions, ...serverOptions });
  const [single, remote, file] = forms;
  return [
    'Serves MCP servers at Streamable HTTP endpoints.',
    '',
    'Usage:',
    `  ${single.padEnd(43)} one STDIO server`,
    `  ${file.padEnd(43)} several servers, at /<name>/mcp`,
    `  ${remote.padEnd(43)} one remote server`,
    `  ${'mcp-gangway check [same arguments]'.padEnd(43)} check each server, then exit`,
    `  ${'mcp-gangway health [same arguments]'.padEnd(43)} check a running gateway`,
    `  ${'mcp-gangway key <name>'.padEnd(43)} create an API key`,
    '',
    'Main options:',
    ...row('--config', 'Configuration file with servers and options.'),
    ...options.filter(([, { inHelp }]) => inHelp).flatMap(([key, option]) => describe(key, option)),
    ...row('-h, --help', 'Print this help; --help all prints all options.'),
    ...row('-v, --version', 'Print the version.'),
    ...otherSources,
    '',
    'Example:',
    '  mcp-gangway -- npx -y @modelcontextprotocol/server-everything',
    '',
    `Docs: ${docsPage('README.md')}`,
  ];
}

function onAll(): readonly string[] {
  const each = (options: Options): readonly string[] => options.flatMap(([key, option]) => describe(key, option));
  return [
    ...otherSources,
    '',
    'Gateway options:',
    ...row('--config', 'Configuration file with servers and options.'),
    ...each(Object.entries(globalOptions)),
    '',
    'Server options. In the file, each server can set its own values:',
    ...each(Object.entries(serverOptions)),
    '',
    'Allowed values and the format of the file:',
    `  ${docsPage('reference/configuration.md')}`,
  ];
}

function onCheck(): readonly string[] {
  return [
    'Starts each server as the gateway would, lists what it offers and stops it.',
    'Also checks Redis and the configuration, and says how to fix each problem.',
    '',
    'Usage:',
    ...forms.map((form) => `  ${form.replace('mcp-gangway', 'mcp-gangway check')}`),
    '',
    'Options:',
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
    '  mcp-gangway key <name>     the user of the key, such as alice',
    '',
    'Prints three lines: the key, which is shown only once; its entry for the',
    '--api-keys file (a JSON list); and its entry for GANGWAY_API_KEYS. The entries',
    'contain a hash of the key, not the key itself.',
    '',
    `Docs: ${docsPage('authentication.md')}`,
  ];
}

function describe(key: string, { description, default: value }: Option): string[] {
  const plain = typeof value === 'string' || typeof value === 'number';
  return row(flagOf(key), plain ? `${description} [${value}]` : description);
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
