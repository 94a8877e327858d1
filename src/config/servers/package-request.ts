/** A package of a registry, which contains a server. */
export interface PackageRequest {
  readonly registry: 'npm' | 'pypi';
  /** The name in the registry, such as `@modelcontextprotocol/server-everything`. */
  readonly name: string;
  /** The optional parts of a Python package, such as `[cli]`; empty for none. */
  readonly extras: string;
  /** The version, range or tag as the operator wrote it; undefined for the newest one. */
  readonly wanted: string | undefined;
  /** The program of the package; undefined for its only one. */
  readonly program: string | undefined;
  /** The arguments of the program. */
  readonly args: readonly string[];
  /** True if the command is `npx` or `uvx`, which can run the package, too. */
  readonly isLauncher: boolean;
  /** True if the package may run programs of its authors while it is installed. */
  readonly runsScripts: boolean;
}

/** The beginnings of a word that names a package, whatever follows. */
const prefixes: Readonly<Record<string, PackageRequest['registry']>> = {
  'npx:': 'npm',
  'npm:': 'npm',
  'uvx:': 'pypi',
  'pypi:': 'pypi',
};

/** The beginnings, for messages. */
export const packageForms = '@scope/name, npx:name or uvx:name';

const npmName = /^((?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*)(?:@([A-Za-z0-9^~<>=.*|+ -]{1,100}))?$/i;
const pypiName = /^([a-z0-9](?:[a-z0-9._-]*[a-z0-9])?)(\[[a-z0-9._, -]{1,200}\])?(?:(?:@|==)([a-z0-9.!+*-]{1,100}))?$/i;
/** Longer names are in no registry. */
const maxNameLength = 214;

const programName = /^[A-Za-z0-9_.-]{1,200}$/;

/**
 * True for a word that stands for a package. Only its form decides, never what is installed on this machine: it begins with
 * a scope (`@scope/name`) or with the name of a registry's program (`npx:name`). A file in a folder `@scope` is
 * `./@scope/name`.
 */
export const isPackageWord = (word: string): boolean =>
  /^@[^/]+\/[^/]/.test(word) || Object.keys(prefixes).some((prefix) => word.startsWith(prefix));

/** A package, or the fault in the word that names it. */
export type ReadPackage =
  | { readonly ok: true; readonly request: PackageRequest | undefined }
  | { readonly ok: false; readonly message: string };

/**
 * Reads the package that a command names: by a word of its own, or as what `npx` or `uvx` runs.
 * @param use the option `packages` of the server
 */
export function readPackage([command, ...args]: readonly [string, ...string[]], use: PackageUse): ReadPackage {
  const runsScripts = use === 'install';
  if (isPackageWord(command)) {
    if (use === 'as-command')
      return { ok: false, message: 'names a package, but the option packages is as-command; write npx or uvx' };
    const prefix = Object.keys(prefixes).find((each) => command.startsWith(each)) ?? '';
    const registry = prefixes[prefix] ?? 'npm';
    const found = parseName(registry, command.slice(prefix.length));
    if (found === undefined)
      return {
        ok: false,
        message: `must name a package, such as ${packageForms}, with a version as in npx:name@1.2.3`,
      };
    return { ok: true, request: { ...found, program: undefined, args, isLauncher: false, runsScripts } };
  }
  if (use === 'as-command') return { ok: true, request: undefined };
  const launched = command === 'npx' ? readNpx(args) : command === 'uvx' ? readUvx(args) : undefined;
  return { ok: true, request: launched && { ...launched, isLauncher: true, runsScripts } };
}

/** The values of the option `packages`. */
export const packageUses = ['install', 'no-scripts', 'as-command'] as const;
export type PackageUse = (typeof packageUses)[number];

type Launched = Omit<PackageRequest, 'isLauncher' | 'runsScripts'>;

function parseName(
  registry: PackageRequest['registry'],
  text: string,
): Pick<PackageRequest, 'registry' | 'name' | 'extras' | 'wanted'> | undefined {
  const isNpm = registry === 'npm';
  const match = (isNpm ? npmName : pypiName).exec(text);
  const name = match?.[1];
  if (name === undefined || name.length > maxNameLength) return undefined;
  const extras = isNpm ? '' : (match?.[2] ?? '');
  const wanted = match?.[isNpm ? 2 : 3];
  return { registry, name, extras, wanted: wanted === 'latest' ? undefined : wanted };
}

/** Reads `[-y] name[@version] args…` and `[-y] --package=name program args…`. Anything else is left to `npx`. */
function readNpx(words: readonly string[]): Launched | undefined {
  const rest = words.filter((word, index) => !(isYes(word) && words.slice(0, index).every(isOption)));
  return readLaunched('npm', rest, ['-p', '--package']);
}

/** Reads `name[@version] args…` and `--from name program args…`. Anything else is left to `uvx`. */
const readUvx = (words: readonly string[]): Launched | undefined => readLaunched('pypi', words, ['--from']);

const isYes = (word: string): boolean => word === '-y' || word === '--yes';
const isOption = (word: string): boolean => word.startsWith('-');

function readLaunched(
  registry: PackageRequest['registry'],
  words: readonly string[],
  flags: readonly string[],
): Launched | undefined {
  const [first = ''] = words;
  const inline = flags.find((flag) => first.startsWith(`${flag}=`));
  const isSeparate = flags.includes(first);
  if (inline === undefined && !isSeparate) {
    const named = isOption(first) ? undefined : parseName(registry, first);
    return named && { ...named, program: undefined, args: words.slice(1) };
  }
  const [text, program = '', ...args] =
    inline === undefined ? words.slice(1) : [first.slice(inline.length + 1), ...words.slice(1)];
  const named = text === undefined ? undefined : parseName(registry, text);
  if (named === undefined || !programName.test(program) || isOption(program)) return undefined;
  return { ...named, program, args };
}

/** The package as an operator writes it, for messages and lists. */
export const nameOfPackageRequest = ({ registry, name, extras, wanted }: PackageRequest): string =>
  `${registry === 'npm' && name.startsWith('@') ? '' : registry === 'npm' ? 'npx:' : 'uvx:'}${name}${extras}${wanted === undefined ? '' : `@${wanted}`}`;
