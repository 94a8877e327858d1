import type { Inputs } from './inputs.ts';
import type { Argument, Package } from './server-json.ts';

/** How the gateway starts a package. */
export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** The parts of a package from which a runner's arguments are made. */
interface Parts {
  readonly identifier: string;
  readonly version: string | undefined;
  /** The arguments for the runner itself. */
  readonly runtime: readonly string[];
  /** The arguments for the server. */
  readonly own: readonly string[];
  /** The names of the variables that the server gets. */
  readonly names: readonly string[];
}

/** A kind of package: the programs that fetch and start it, the first of which is the default. */
interface Runner {
  readonly programs: readonly string[];
  /** The registry that the programs use by themselves. */
  readonly registry: RegExp;
  readonly args: (parts: Parts, program: string) => readonly string[];
}

const withVersion = ({ identifier, version }: Parts, sign: string): string =>
  version === undefined ? identifier : `${identifier}${sign}${version}`;

/** Publishers sometimes repeat the package among the arguments of the runner. */
const packageOnce = (parts: Parts, sign = '@'): readonly string[] =>
  parts.runtime.some((word) => word === parts.identifier || word.startsWith(`${parts.identifier}${sign}`))
    ? []
    : [withVersion(parts, sign)];

const runners = new Map<string, Runner>([
  [
    'npm',
    {
      programs: ['npx', 'bunx', 'pnpx'],
      registry: /^https:\/\/registry\.npmjs\.(?:org|com)\/?$/,
      args: (parts, program) => {
        const asks = program === 'npx' && !parts.runtime.some((word) => /^(?:-y|--yes)$/.test(word));
        return [asks ? ['-y'] : [], parts.runtime, packageOnce(parts), parts.own].flat();
      },
    },
  ],
  [
    'pypi',
    {
      programs: ['uvx', 'pipx'],
      registry: /^https:\/\/pypi\.org(?:\/simple)?\/?$/,
      args: (parts, program) =>
        program === 'pipx'
          ? ['run', ...parts.runtime, ...packageOnce(parts, '=='), ...parts.own]
          : [...parts.runtime, ...packageOnce(parts), ...parts.own],
    },
  ],
  ['oci', { programs: ['docker', 'podman', 'nerdctl'], registry: /^https:\/\//, args: containerArguments }],
  [
    'nuget',
    {
      programs: ['dnx'],
      registry: /^https:\/\/(?:api|www)\.nuget\.org(?:\/v3\/index\.json)?\/?$/,
      args: (parts) => [
        ...parts.runtime,
        ...packageOnce(parts),
        '--yes',
        ...(parts.own.length > 0 ? ['--'] : []),
        ...parts.own,
      ],
    },
  ],
  [
    'go',
    {
      programs: ['go'],
      registry: /^https:\/\/proxy\.golang\.org\/?$/,
      args: (parts) => ['run', ...parts.runtime, withVersion(parts, '@'), ...parts.own],
    },
  ],
]);

/** The values of variables stay out of the arguments, which every user of the machine can see. */
function containerArguments(parts: Parts): readonly string[] {
  const { identifier, runtime, own, names } = parts;
  const isTagged = /@|:[^/]*$/.test(identifier);
  const image = isTagged ? identifier : withVersion(parts, ':');
  // Publishers also write the command of docker and the image there, mostly without its tag.
  const isImage = (word: string): boolean => word === identifier || word === identifier.replace(/(?:@|:[^/]*$).*$/, '');
  const given = (runtime[0] === 'run' ? runtime.slice(1) : runtime).filter((word) => !isImage(word));
  const missing = ['-i', '--rm'].filter((flag) => !given.includes(flag));
  const variables = names.filter((name) => !given.includes(name)).flatMap((name) => ['-e', name]);
  return ['run', ...missing, ...variables, ...given, image, ...own];
}

/**
 * The command that starts a package. Only programs that fetch packages of this kind are taken from the file.
 * Undefined if the gateway cannot start the package; `inputs` then has an obstacle.
 */
export function launchOf(described: Package, inputs: Inputs): Launch | undefined {
  const { registryType, identifier, version, runtimeHint } = described;
  const runner = runners.get(registryType);
  if (runner === undefined) {
    inputs.obstacles.push(explainUnsupported(described));
    return undefined;
  }
  if (
    !/^[A-Za-z0-9@][A-Za-z0-9@._/:+~-]*$/.test(identifier) ||
    !/^(?:[A-Za-z0-9][A-Za-z0-9._+~-]*)?$/.test(version ?? '')
  ) {
    inputs.obstacles.push('its identifier or its version has characters that are not allowed in a package name');
    return undefined;
  }
  const [fallback = ''] = runner.programs;
  const command = runner.programs.find((program) => program === runtimeHint) ?? fallback;
  if (runtimeHint !== undefined && command !== runtimeHint)
    inputs.notes.push(
      `the package runs with ${command}, because the hint ${runtimeHint} does not fetch packages of this kind`,
    );
  if (version === undefined && registryType !== 'oci')
    inputs.notes.push('the entry has no version, so the newest version runs; to pin a version, add it in args');
  if (described.fileSha256 !== undefined)
    inputs.notes.push(`fileSha256 of the package is not checked; ${command} checks only the hashes from the registry`);
  const env = environmentOf(described, inputs);
  noteRegistry(described, runner, env, inputs);
  const words = wordsOf(described.runtimeArguments, inputs);
  const runtime = registryType === 'oci' ? withoutValues(words, env) : words;
  if (registryType === 'oci' && runtime.length > 0)
    inputs.notes.push(
      `${command} gets arguments from the publisher (${runtime.join(' ')}); check what they give access to`,
    );
  const own = wordsOf(described.packageArguments, inputs);
  const parts = { identifier, version, runtime, own, names: Object.keys(env) };
  return { command, args: runner.args(parts, command), env };
}

/** Moves the values of `-e NAME=value` to the environment of the program, from which a container can take them. */
function withoutValues(words: readonly string[], env: Record<string, string>): readonly string[] {
  return words.map((word, index) => {
    const [, name, value] = /^([A-Za-z_][A-Za-z0-9_]*)=(.*)$/s.exec(word) ?? [];
    if (!/^(?:-e|--env)$/.test(words[index - 1] ?? '') || name === undefined || value === undefined) return word;
    env[name] = value;
    return name;
  });
}

/** The remedy for kinds of packages that have no program which fetches and starts them. */
function explainUnsupported({ registryType, identifier, version, fileSha256 }: Package): string {
  if (registryType === 'mcpb') {
    const sum = fileSha256 === undefined ? '' : ` check that its sha256sum is ${fileSha256},`;
    return `the package is a bundle, which the gateway does not unpack; download ${identifier},${sum} unzip it, and write mcp_config of its manifest.json as command, args and env`;
  }
  if (registryType === 'cargo')
    return `cargo has no command that fetches and starts a package; run cargo install ${identifier}${version === undefined ? '' : ` --version ${version}`}, and write the program as command`;
  return `packages of the kind ${registryType} are unknown; install the package, and write its program as command`;
}

function environmentOf({ environmentVariables = [] }: Package, inputs: Inputs): Record<string, string> {
  const texts = environmentVariables.flatMap((input): [string, string][] => {
    const text = inputs.textOf(input, `the variable ${input.name}`, input.name, 'env');
    return text === undefined ? [] : [[input.name, text]];
  });
  return Object.fromEntries(texts);
}

function noteRegistry(
  { registryType, registryBaseUrl }: Package,
  { registry }: Runner,
  env: Record<string, string>,
  inputs: Inputs,
): void {
  if (registryBaseUrl === undefined || registry.test(registryBaseUrl)) return;
  if (registryType === 'npm') env['npm_config_registry'] = inputs.literal(registryBaseUrl, 'the registry');
  else
    inputs.notes.push(
      `the package comes from ${registryBaseUrl}, which is not the default registry; configure that registry on this machine`,
    );
}

/** The words of arguments. Names and values are words of their own, which parsers of options accept more often. */
export function wordsOf(given: readonly Argument[] | undefined, inputs: Inputs): readonly string[] {
  return (given ?? []).flatMap((argument, index) => {
    const { type, name = '', valueHint, isRepeated } = argument;
    const shown = type === 'named' ? name : valueHint || `argument ${index + 1}`;
    const label = type === 'named' ? `the argument ${name}` : `the argument ${shown}`;
    inputs.literal(name, label);
    const isFlag = type === 'named' && isConstant(argument);
    const isSwitch = type === 'named' && argument.format === 'boolean';
    const fixed = argument.value ?? argument.default;
    if (isFlag || (isSwitch && fixed === 'true')) return [name];
    if (isSwitch && fixed === 'false') return [];
    const text = inputs.textOf(argument, label, shown, 'args');
    if (text === undefined) return [];
    if (isRepeated === true && argument.value === undefined)
      inputs.notes.push(`${label} can be given more than once; add further values in args`);
    return type === 'named' ? [name, text] : [text];
  });
}

/** A named argument that nobody is asked for is a flag of the publisher, such as `--stdio`. */
const isConstant = ({
  value,
  default: fallback,
  isRequired,
  description,
  placeholder,
  choices,
  valueHint,
}: Argument): boolean =>
  [value, fallback, isRequired || undefined, description, placeholder, choices, valueHint].every(
    (each) => each === undefined,
  );
