import { forms, type HelpTopic } from './command-line.ts';
import type { Option } from './option-kinds.ts';
import { environmentNameOf, flagOf } from './option-names.ts';
import { globalOptions, serverOptions } from './options.ts';

const columns = 80;
const indent = 21;

/**
 * What `--help` prints, on 80 columns.
 * @param docsFolder where `docs` is, if it is there; on a line of its own, however long it is
 */
export const renderHelp = (topic: HelpTopic = 'gateway', docsFolder?: string): string =>
  `${texts[topic](docsFolder).join('\n')}\n`;

const texts: Readonly<Record<HelpTopic, (docsFolder?: string) => readonly string[]>> = {
  gateway: onGateway,
  all: onAll,
  check: onCheck,
  health: onHealth,
  key: onKey,
};

type Options = readonly (readonly [string, Option])[];

/** The forms, the main options and two examples, on one screen of 40 lines. */
function onGateway(): readonly string[] {
  const options: Options = Object.entries({ ...globalOptions, ...serverOptions });
  const [single, remote, file] = forms;
  return [
    'Puts MCP servers behind one Streamable HTTP endpoint.',
    '',
    'Usage:',
    `  ${single.padEnd(43)} one STDIO server`,
    `  ${file.padEnd(43)} several, at /<name>/mcp`,
    `  ${remote.padEnd(43)} one remote server`,
    `  ${'mcp-gangway check [the same]'.padEnd(43)} try each server (--json), and end`,
    `  ${'mcp-gangway health [the same]'.padEnd(43)} ask a running gateway (--ready)`,
    `  ${'mcp-gangway key <name>'.padEnd(43)} make an API key`,
    '',
    'Options:',
    ...row('--config', 'File with several servers, and options.'),
    ...options.filter(([, { inHelp }]) => inHelp).flatMap(([key, option]) => describe(key, option)),
    ...row('-h, --help', 'Print this.'),
    ...row('-v, --version', 'Print the version.'),
    `Each is also a variable, as ${environmentNameOf('maxSessions')}, and a key of the file.`,
    '',
    'Examples:',
    '  mcp-gangway -- npx -y @modelcontextprotocol/server-everything',
    '  mcp-gangway --port 3000 --config gangway.json',
    '',
    'All (--admin-port, --audit, …): mcp-gangway --help all; docs/configuration.md',
  ];
}

function onAll(docsFolder?: string): readonly string[] {
  const each = (options: Options): readonly string[] => options.flatMap(([key, option]) => describe(key, option));
  return [
    `Each is also a variable, as ${environmentNameOf('maxSessions')}, and a key of the file.`,
    '',
    'Of the gateway:',
    ...row('--config', 'File with several servers, and options.'),
    ...each(Object.entries(globalOptions)),
    '',
    'Of servers; in the file each can have its own:',
    ...each(Object.entries(serverOptions)),
    '',
    'With their bounds, and the file: docs/configuration.md',
    ...(docsFolder === undefined ? [] : ['docs is here:', `  ${docsFolder}`]),
  ];
}

function onCheck(): readonly string[] {
  return [
    'Tries each server as the gateway would start it, names what it offers, ends it;',
    'looks at Redis and at the configuration, and says what to do.',
    '',
    'Usage:',
    ...forms.map((form) => `  ${form.replace('mcp-gangway', 'mcp-gangway check')}`),
    '',
    'Options:',
    ...row('--json', 'Print one JSON object (docs/health.md).'),
    '  and those of the gateway: mcp-gangway --help',
    '',
    'Exit code: 0 every server works, and Redis; 1 one does not; 2 the configuration',
    'is wrong.',
  ];
}

function onHealth(): readonly string[] {
  return [
    'Asks a running gateway for its health, for the health check of a container.',
    '',
    'Usage:',
    '  mcp-gangway health [the options of the gateway]',
    '',
    'In a container whose main process is the gateway, its options are known.',
    '',
    'Options:',
    ...row('--ready', 'Ask whether it takes new sessions (/readyz), not only whether it runs (/healthz).'),
    '',
    'Exit code: 0 the gateway is well; 1 it is not; 2 the configuration is wrong.',
  ];
}

function onKey(): readonly string[] {
  return [
    'Makes an API key for a client.',
    '',
    'Usage:',
    '  mcp-gangway key <name>     who is to have it, such as alice',
    '',
    'Prints three lines: the key, which is shown this once; its entry for the list in',
    'the file of --api-keys; and the same for the variable GANGWAY_API_KEYS. The last',
    'two hold a hash and not the key. What to do with them: docs/authentication.md',
  ];
}

function describe(key: string, { description, default: value }: Option): string[] {
  const plain = typeof value === 'string' || typeof value === 'number';
  return row(flagOf(key), plain ? `${description} [${value}]` : description);
}

/** A name and its description, wrapped; below a name that is too long to stand beside it. */
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
