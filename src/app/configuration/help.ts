import { forms } from './command-line.ts';
import type { Option } from './option-kinds.ts';
import { environmentNameOf, flagOf } from './option-names.ts';
import { globalOptions, serverOptions } from './options.ts';

const columns = 80;
const indent = 21;

/** What `--help` prints: the forms, the main options and two examples, on one screen of 80 columns and 40 lines. */
export function renderHelp(): string {
  const options: readonly (readonly [string, Option])[] = Object.entries({ ...globalOptions, ...serverOptions });
  const [single, remote, file] = forms;
  return `${[
    'Puts MCP servers behind one Streamable HTTP endpoint.',
    '',
    'Usage:',
    `  ${single.padEnd(43)} one STDIO server`,
    `  ${file.padEnd(43)} several, at /<name>/mcp`,
    `  ${remote.padEnd(43)} one remote server`,
    `  ${'mcp-gangway check [the same]'.padEnd(43)} try each server (--json), and end`,
    `  ${'mcp-gangway key <name>'.padEnd(43)} make an API key`,
    '',
    'Options:',
    ...options.filter(([, { inHelp }]) => inHelp).flatMap(([key, option]) => describe(key, option)),
    ...row('-h, --help', 'Print this.'),
    ...row('-v, --version', 'Print the version.'),
    '',
    `Each is also a variable, as ${environmentNameOf('maxSessions')}, and a key of the file.`,
    '',
    'Examples:',
    '  mcp-gangway -- npx -y @modelcontextprotocol/server-everything',
    '  mcp-gangway --port 3000 --config gangway.json',
    '',
    'All options and the file: docs/configuration.md',
  ].join('\n')}\n`;
}

function describe(key: string, { description, default: value }: Option): string[] {
  const plain = typeof value === 'string' || typeof value === 'number';
  return row(flagOf(key), plain ? `${description} [${value}]` : description);
}

/** A name and its description, wrapped. */
function row(name: string, description: string): string[] {
  const lines = [''];
  for (const word of description.split(' ')) {
    const longer = `${lines.at(-1)} ${word}`.trimStart();
    if (longer.length <= columns - indent) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines.map((line, index) => (index === 0 ? `  ${name}` : '').padEnd(indent) + line);
}
