import type { Configuration, GatewayConfig, ServerConfig } from '../../config/config.ts';
import type { Environment } from '../../config/sources/environment-variables.ts';
import type { NamedItem } from '../../core/backend/filter-rules.ts';
import { type Features, needed } from '../features/gateway-features.ts';
import type { PinChanges } from '../features/servers.ts';
import { tryServer } from './check/check-command.ts';
import { failed, misconfigured } from './exit-codes.ts';
import type { Outcome } from './servers-command.ts';

type Checked = Extract<Configuration, { readonly config: GatewayConfig }>;

/** Writes the pin file of a server or view (`mcp-gangway pin`), and says what has changed. */
export async function pinTools(
  { config, word }: Checked,
  features: Features,
  environment: Environment,
): Promise<Outcome> {
  const refuse = (why: string, exitCode: number): Outcome => ({ stderr: `mcp-gangway: ${why}\n`, exitCode });
  const server = config.servers.find(({ name }) => name === word);
  if (server === undefined) {
    const names = config.servers.map(({ name }) => name).join(', ');
    return refuse(`pin needs the name of a server or view: ${names}.`, misconfigured);
  }
  const { name, pin: file } = server;
  if (file === undefined)
    return refuse(`${name} has no pin file. Set "pin" in its entry to the path of the file.`, misconfigured);
  try {
    const tools = await toolsOf(server, config, features, environment);
    return { stdout: describe(needed(features.definitions, 'pin').writePins(file, name, tools), file), exitCode: 0 };
  } catch (cause) {
    return refuse(`The pin file was not written: ${(cause as Error).message}`, failed);
  }
}

/** The tools that a server lists. Those of a view are what its servers show, with their prefixes. */
async function toolsOf(
  server: ServerConfig,
  config: GatewayConfig,
  features: Features,
  environment: Environment,
): Promise<NamedItem[]> {
  const listOf = async (each: ServerConfig, look: 'listed' | 'shown'): Promise<NamedItem[]> => {
    const checked = await tryServer(each, config, features, environment, look);
    if (!checked.isFine) throw new Error(`${each.name}: ${checked.failure.message}`);
    return [...(checked.findings.items?.tools.values() ?? [])];
  };
  if (server.address?.transport !== 'view') return listOf({ ...server, pin: undefined }, 'listed');
  const tools: NamedItem[] = [];
  for (const { name, prefix } of server.address.members) {
    const member = config.servers.find((each) => each.name === name);
    if (member === undefined) continue;
    for (const { name: own, text } of await listOf(member, 'shown')) tools.push({ name: `${prefix}${own}`, text });
  }
  return tools;
}

function describe({ pinned, added, removed, changed }: PinChanges, file: string): string {
  const lines = [
    ...added.map((tool) => `new: ${printable(tool)}`),
    ...removed.map((tool) => `removed: ${printable(tool)}`),
    ...changed.map(({ tool, members }) => `changed: ${printable(tool)} (${members.join(', ')})`),
    `Pinned ${pinned} ${pinned === 1 ? 'tool' : 'tools'} in ${file}.`,
  ];
  return `${lines.join('\n')}\n`;
}

/** A server chooses the names of its tools, and a terminal obeys control characters. */
const printable = (name: string): string => JSON.stringify(name).slice(1, -1);
