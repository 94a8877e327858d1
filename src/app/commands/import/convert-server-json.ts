import { headerFault } from '../../../config/options/remote-options.ts';
import { deriveServerName } from '../../../config/servers/server-name.ts';
import { Inputs } from './inputs.ts';
import { launchOf } from './launch.ts';
import type { Package, ServerJson, Transport } from './server-json.ts';

/** The entry of a server in the file of the gateway. */
export type WrittenEntry = Readonly<Record<string, unknown>>;

/** One package or remote of a `server.json`, converted. */
export interface ConvertedEntry {
  readonly name: string;
  /** Undefined if there is an obstacle. */
  readonly entry: WrittenEntry | undefined;
  readonly inputs: Inputs;
}

/** A default of the gateway, with which no name of a server may collide. */
const endpointPath = '/mcp';

/**
 * Converts a description of the MCP registry. Each package and each remote becomes one entry. They are the same server,
 * so all but the first are disabled.
 */
export function convertServerJson({ name, packages = [], remotes = [] }: ServerJson): readonly ConvertedEntry[] {
  const base = deriveServerName([name.replace(/[^A-Za-z0-9._/-]/g, '-').slice(-50)], endpointPath, () => '');
  const forms = [
    ...packages.map((each) => ({ kind: each.registryType, convert: (inputs: Inputs) => entryOfPackage(each, inputs) })),
    ...remotes.map((each) => ({ kind: each.type, convert: (inputs: Inputs) => entryOfRemote(each, inputs) })),
  ];
  const names = new Set<string>();
  let isFirst = true;
  return forms.map(({ kind, convert }) => {
    const wanted = isFirst ? base : `${base}-${kind.replace(/[^A-Za-z0-9-]/g, '')}`;
    let own = wanted;
    for (let count = 2; names.has(own); count += 1) own = `${wanted}-${count}`;
    names.add(own);
    const inputs = new Inputs(base);
    const converted = convert(inputs);
    if (converted === undefined || inputs.obstacles.length > 0) {
      if (own === base) names.delete(own);
      return { name: own, entry: undefined, inputs };
    }
    const entry = isFirst ? converted : { ...converted, disabled: true };
    isFirst = false;
    return { name: own, entry, inputs };
  });
}

/** A package that serves HTTP is not started by the gateway, which connects to it. */
function entryOfPackage(described: Package, inputs: Inputs): WrittenEntry | undefined {
  const launch = launchOf(described, inputs);
  if (launch === undefined) return undefined;
  const { transport } = described;
  if (transport !== undefined && transport.type !== 'stdio') {
    const { command, args, env } = launch;
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    const line = [...variables, command, ...args].join(' ');
    inputs.notes.push(
      `the package serves ${transport.type}, so the gateway only connects to its URL; start the package yourself: ${line}`,
    );
    return entryOfRemote(withOwnVariables(transport, described), inputs);
  }
  const { command, args, env } = launch;
  return { command, args, ...(Object.keys(env).length > 0 && { env }) };
}

/** The URL of a package can also name its arguments and its variables of the environment. */
function withOwnVariables(transport: Transport, described: Package): Transport {
  const { packageArguments = [], runtimeArguments = [], environmentVariables = [] } = described;
  const named = [...runtimeArguments, ...packageArguments].flatMap((argument) =>
    [argument.valueHint, argument.name?.replace(/^-+/, '')].flatMap((key) => (key ? [[key, argument] as const] : [])),
  );
  const variables = environmentVariables.map((input) => [input.name, input] as const);
  return { ...transport, variables: { ...Object.fromEntries([...variables, ...named]), ...transport.variables } };
}

function entryOfRemote(
  { type, url = '', headers = [], variables }: Transport,
  inputs: Inputs,
): WrittenEntry | undefined {
  const transport = new Map([
    ['streamable-http', 'http'],
    ['sse', 'sse'],
  ]).get(type);
  if (transport === undefined) {
    inputs.obstacles.push(`its transport ${type} is unknown; write the entry by hand`);
    return undefined;
  }
  const text = inputs.textOf({ value: url, variables }, 'the URL', 'url', 'args') ?? '';
  if (!/^https?:\/\//i.test(text) && !text.startsWith('${'))
    inputs.obstacles.push('its URL does not begin with http:// or https://');
  const [unknown] = /(?<!\$)\{[^{}]*\}/.exec(text) ?? [];
  if (unknown !== undefined) inputs.obstacles.push(`its URL has ${unknown}, which the file does not describe`);
  const texts = headers.flatMap((input): [string, string][] => {
    const label = `the header ${input.name}`;
    const fault = headerFault(input.name.toLowerCase());
    if (fault !== undefined) inputs.notes.push(`${label} was left out: it ${fault}`);
    const value = fault === undefined ? inputs.textOf(input, label, input.name, 'headers') : undefined;
    return value === undefined ? [] : [[input.name, value]];
  });
  return { type: transport, url: text, ...(texts.length > 0 && { headers: Object.fromEntries(texts) }) };
}
