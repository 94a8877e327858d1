import { basename } from 'node:path';

/**
 * Variables by which a server finds its files, its programs and its language. Operators keep no secrets in them. The
 * gateway's own environment holds REDIS_URL, tokens and NODE_OPTIONS (P12).
 */
const inheritedNames = new Set(['HOME', 'LANG', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'TMPDIR', 'TZ', 'USER']);

/** Prefix of functions that bash exports; a vulnerable bash runs the text behind them (CVE-2014-6271). */
const shellFunctionPrefix = '()';

/** What programs that download packages read to reach a registry through a proxy, and to check its certificate. */
const networkNames: ReadonlySet<string> = new Set([
  ...['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY'].flatMap((name) => [name, name.toLowerCase()]),
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
]);

/** Variables of one family of programs that download packages: names, and beginnings of names. */
interface Downloader {
  readonly programs: readonly string[];
  readonly names: ReadonlySet<string>;
  readonly prefixes: readonly string[];
}

const downloaders: readonly Downloader[] = [
  {
    programs: ['npx', 'npm', 'pnpm', 'pnpx', 'yarn', 'bunx'],
    names: new Set(['NODE_EXTRA_CA_CERTS', 'npm_config_registry', 'NPM_CONFIG_REGISTRY', 'npm_config_cafile']),
    prefixes: [],
  },
  // A token that publishes packages is of no use for running one.
  { programs: ['uvx', 'uv'], names: new Set(), prefixes: ['UV_'] },
  // Only the gateway itself runs pip.
  { programs: ['pip'], names: new Set(), prefixes: ['PIP_'] },
  { programs: ['pipx'], names: new Set(['PIP_INDEX_URL', 'PIP_CERT']), prefixes: [] },
];

const publishPrefix = 'UV_PUBLISH_';

/** Finds the family of a program that downloads packages. */
const downloaderOf = (command: string): Downloader | undefined =>
  downloaders.find(({ programs }) => programs.includes(basename(command)));

/** True if a program that downloads packages inherits this variable. A proxy's URL can hold a password. */
const isForDownloader = (name: string, { names, prefixes }: Downloader): boolean =>
  networkNames.has(name) ||
  names.has(name) ||
  (prefixes.some((prefix) => name.startsWith(prefix)) && !name.startsWith(publishPrefix));

/**
 * Returns the whole environment of a server's process.
 * @param parent the environment of the gateway; only names on the allow-list (HOME, PATH, LC_* …) are taken from it
 * @param configured the variables that the operator configured for this server; they take precedence
 * @param command the program: one that downloads packages also gets what it needs to reach its registry
 */
export function childEnvironment(
  parent: Readonly<Record<string, string | undefined>>,
  configured: Readonly<Record<string, string>> = {},
  command = '',
): Record<string, string> {
  const environment = new Map<string, string>();
  const downloader = downloaderOf(command);
  for (const [name, value] of Object.entries(parent)) {
    const isForAll = inheritedNames.has(name) || name.startsWith('LC_');
    const isInherited = isForAll || (downloader !== undefined && isForDownloader(name, downloader));
    if (isInherited && value !== undefined && !value.startsWith(shellFunctionPrefix)) environment.set(name, value);
  }
  for (const [name, value] of Object.entries(configured)) environment.set(name, value);
  return Object.fromEntries(environment);
}
