import type { Configuration, GatewayConfig, ServerConfig } from '../../config/config.ts';
import { formatSize } from '../../config/units.ts';
import type { NamedItem } from '../../core/backend/filter-rules.ts';
import { escapeControlCharacters } from '../../core/backend/stdio/pipes/printable.ts';
import { parseBounded } from '../../core/protocol/json.ts';
import { definingMembers, maxToolBytes } from '../../core/protocol/tool-definition.ts';
import { isObject } from '../../core/util/is-object.ts';
import type { PinChanges } from '../features/calls.ts';
import { type GatewaySetup, needed } from '../features/gateway-features.ts';
import { pinCommand } from '../servers/run-server.ts';
import { tryServer } from './check/check-command.ts';
import { failureText } from './check/render-check.ts';
import { failed, misconfigured, type Outcome, printed, refused } from './outcome.ts';

/**
 * Writes the pin file of a server or view (`mcp-gangway pin`), and shows the new and changed tools. With `--check`, only
 * shows them.
 */
export async function pinTools(
  { word, file: configFile, flags }: Extract<Configuration, { readonly config: GatewayConfig }>,
  setup: GatewaySetup,
): Promise<Outcome> {
  const { config, features } = setup;
  const server = config.servers.find(({ name }) => name === word);
  if (server === undefined) {
    const names = config.servers.map(({ name }) => name).join(', ');
    return refused(`pin needs the name of a server or view: ${names}.`, misconfigured);
  }
  const { name, pin: file } = server;
  if (file === undefined)
    return refused(`${name} has no pin file. Set "pin" in its entry to the path of the file.`, misconfigured);
  try {
    const tools = await toolsOf(server, setup);
    const pins = needed(features.definitions, 'pin').preparePins(file, name, tools);
    const shown = describe(pins, new Map(tools.map((tool) => [tool.name, tool.text])));
    if (flags.has('--check')) {
      const count = pins.added.length + pins.changed.length;
      const end =
        count === 0
          ? 'No tool is new or changed.'
          : `${countOf(count)} new or changed. Nothing was written; to pin: ${pinCommand(name, configFile)}`;
      return { stdout: `${shown}${end}\n`, exitCode: count === 0 ? 0 : failed };
    }
    pins.write();
    return printed(`${shown}Pinned ${pins.pinned} ${pins.pinned === 1 ? 'tool' : 'tools'} in ${file}.\n`);
  } catch (cause) {
    return refused(`The pin file was not written: ${(cause as Error).message.trimEnd()}`);
  }
}

/** The tools that a server lists. Those of a view are what its servers show, with their prefixes. */
async function toolsOf(server: ServerConfig, setup: GatewaySetup): Promise<NamedItem[]> {
  const listOf = async (each: ServerConfig, look: 'listed' | 'shown'): Promise<NamedItem[]> => {
    const checked = await tryServer(each, setup, look);
    if (!checked.isFine) throw new Error(failureText(each.name, checked.failure));
    return [...(checked.findings.items?.tools.values() ?? [])];
  };
  if (server.address?.transport !== 'view') return listOf({ ...server, pin: undefined }, 'listed');
  const tools: NamedItem[] = [];
  for (const { name, prefix } of server.address.members) {
    const member = setup.config.servers.find((each) => each.name === name);
    if (member === undefined) continue;
    for (const { name: own, text } of await listOf(member, 'shown')) tools.push({ name: `${prefix}${own}`, text });
  }
  return tools;
}

const countOf = (tools: number): string => (tools === 1 ? '1 tool is' : `${tools} tools are`);

/** What is different, with the whole definition of each new and changed tool: the hashes in the file show nothing. */
function describe({ added, removed, changed, tooLong }: PinChanges, texts: ReadonlyMap<string, Buffer>): string {
  const definition = (tool: string): string[] => describeTool(texts.get(tool));
  const lines = [
    ...added.flatMap((tool) => [`new: ${shortened(tool)}`, ...definition(tool)]),
    ...removed.map((tool) => `removed: ${shortened(tool)}`),
    ...changed.flatMap(({ tool, members }) => [
      `changed: ${shortened(tool)} (${members.join(', ')})`,
      ...definition(tool),
    ]),
    ...tooLong.map(
      (tool) => `not pinned: ${shortened(tool)} (longer than ${formatSize(maxToolBytes)}, so clients do not see it)`,
    ),
  ];
  return lines.map((line) => `${line}\n`).join('');
}

/** The most characters of a member that are shown. A longer text is shown with its length (P8). */
const maxShown = 4_000;

function describeTool(text: Buffer | undefined): string[] {
  const tool = text === undefined ? undefined : parseBounded(text, text.length);
  if (!isObject(tool)) return [];
  return definingMembers
    .filter((member) => tool[member] !== undefined)
    .map((member) => `  ${member}: ${shortened(tool[member])}`);
}

/** Text of a server as compact JSON, of bounded length. A terminal obeys control characters, so they are escaped. */
function shortened(value: unknown): string {
  const json = JSON.stringify(value);
  const text = typeof value === 'string' ? json.slice(1, -1) : json;
  const end = text.length > maxShown ? `… (the first ${maxShown} of ${text.length} characters)` : '';
  return `${escapeControlCharacters(Buffer.from(text.slice(0, maxShown)))}${end}`;
}
