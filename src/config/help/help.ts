// src/config/help: the texts of --help.

import { docsPage } from '../../core/util/docs-page.ts';
import { firstSentenceOf, type Option, writtenDefault } from '../options/option-kinds.ts';
import { environmentNameOf, flagsOf, options } from '../options/option-names.ts';
import { gatewayLeaves, serverLeaves } from '../options/options.ts';
import { commandNames, factsOf, forms, type HelpTopic, serverFlags } from '../sources/command-table.ts';

const columns = 80;
const indent = 21;

/** Renders the text of `--help` for a topic, 80 columns wide. Lines with a URL may be longer. */
export function renderHelp(topic: HelpTopic = 'gateway'): string {
  const lines = topic === 'gateway' ? onGateway() : topic === 'all' ? onAll() : onCommand(topic);
  return `${lines.join('\n')}\n`;
}

const otherSources = [
  `Each option is also a variable, such as ${environmentNameOf('timeouts.sessionIdle')}, and a key of the`,
  `file, such as timeouts.sessionIdle. Times and sizes have units: 30m, 4MiB.`,
];

/** The flags that are no options of the tree. */
const gatewayFlags = [...serverFlags, ...(factsOf('serve')?.flags ?? [])];

/** The forms, the main options and an example, on one screen of 40 lines. */
function onGateway(): readonly string[] {
  const [single, packaged, remote, file] = forms;
  const usages = [
    [packaged, 'one server from npm or PyPI'],
    [single, 'one STDIO server'],
    [file, 'several servers, at /<name>/mcp'],
    [remote, 'one remote server'],
    ...commandNames.flatMap((name) => {
      const overview = factsOf(name)?.overview;
      return overview === undefined ? [] : [[`mcp-gangway ${overview[0]}`, overview[1]]];
    }),
  ];
  return [
    'Serves MCP servers at Streamable HTTP endpoints. Usage (serve is the default):',
    ...usages.map(([usage = '', summary]) => `  ${usage.padEnd(43)} ${summary}`),
    'Main options:',
    ...gatewayFlags.flatMap(({ flag, description }) => row(flag, description)),
    ...[...options].flatMap(([path, option]) =>
      option.short === undefined ? [] : describe(path, option, firstSentenceOf(option)),
    ),
    ...row('-h, --help', 'Print this help; --help all: all options; -v: version.'),
    ...otherSources,
    'Example: mcp-gangway @modelcontextprotocol/server-everything',
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
    ...gatewayFlags.flatMap(({ flag, description }) => row(flag, description)),
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

function onCommand(name: Exclude<HelpTopic, 'gateway' | 'all'>): readonly string[] {
  const { flags = [], help = '' } = factsOf(name) ?? {};
  const rows = flags.flatMap(({ flag, value = '', description }) => row(`${flag} ${value}`.trimEnd(), description));
  return [help.replace('{flags}', rows.join('\n'))];
}

const describe = (path: string, option: Option, text = option.description): string[] =>
  row(flagsOf(path)[0], text + defaultText(option));

function defaultText(option: Option): string {
  const usual = writtenDefault(option);
  return usual === undefined ? '' : ` [${usual}]`;
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
