import type { ServerAddress } from '../server-url.ts';

/** Paths that the gateway itself answers. */
const ownPaths = ['healthz', 'readyz', 'metrics'];

/** The fault in a server's name, or undefined. The name is a part of the endpoint paths, `/<name>/mcp`. */
export function serverNameFault(name: string, path: string): string | undefined {
  if (!/^(?!\.)[A-Za-z0-9._-]{1,64}$/.test(name)) {
    return 'is not a valid server name; use 1 to 64 letters, digits, dots, underscores and hyphens, and no dot at the beginning';
  }
  if (ownPaths.includes(name)) return 'is a path of the gateway itself; choose another name';
  if (name === path.split('/')[1]) return `is the beginning of the endpoint path ${path}; choose another name`;
  return undefined;
}

/** Programs that run the program which an argument names. */
const launchers = /^(?:npx|bunx|uvx|pnpx|npm|pnpm|yarn|bun|deno|uv|pipx|tsx|node|nodejs|python[\d.]*)$/;
const subcommands = ['exec', 'dlx', 'run', 'x', 'tool'];

/** Files and folders of a program that say nothing about it. */
const commonFiles = /^(?:index|main|server|app|cli)$/;
const commonFolders = /^(?:\.{0,2}|dist|build|out|src|lib|bin|server|app)$/;

/** How many folders above a program's file its package.json is looked for. */
const maxPackageDepth = 4;

/**
 * Derives a server's name from its command: `npx -y @scope/server-x@1` → `server-x`, `node dist/foo.js` → `foo`. A file
 * with a common name is named after its package, or after its folder: `node /srv/weather/dist/index.js` → `weather`.
 * @param readFile reads a package.json; throws if there is none
 */
export function deriveServerName(
  [command = '', ...args]: readonly string[],
  path: string,
  readFile: (path: string) => string,
): string {
  const program = stem(command);
  const target = args.find((argument) => !argument.startsWith('-') && !subcommands.includes(argument));
  const named = launchers.test(program) ? (target ?? '') : command;
  const derived = stem(named);
  const folders = named.split(/[/\\]/).slice(0, -1);
  if (!commonFiles.test(derived)) return usableName([derived], path);
  const folder = folders.findLast((each) => !commonFolders.test(each)) ?? '';
  const isScript = /\.[cm]?[jt]s$/.test(named);
  return usableName([isScript ? nameOfPackage(folders, readFile) : '', folder.replace(/^@/, ''), derived], path);
}

/** The name in the nearest package.json of a file in these folders, without its scope; empty if there is none. */
function nameOfPackage(folders: readonly string[], readFile: (path: string) => string): string {
  for (let depth = 0; depth < maxPackageDepth && depth <= folders.length; depth++) {
    const folder = [...folders.slice(0, folders.length - depth), 'package.json'].join('/');
    try {
      const { name } = JSON.parse(readFile(folder)) as { name?: unknown };
      if (typeof name === 'string') return stem(name);
    } catch {
      // No package, or one that cannot be read: the next folder may have one.
    }
  }
  return '';
}

/**
 * Derives a server's name from its address: the host, with the port if it is not the one of the scheme, or the file name
 * of its socket without the extension.
 */
export function nameOfAddress(address: ServerAddress, path: string): string {
  if (address.transport === 'unix') return usableName([stem(address.path).replace(/\.sock(?:et)?$/, '')], path);
  if (address.transport === 'view') return usableName([], path);
  const { host, port } = address.transport === 'tcp' ? address : { host: address.url.hostname, port: address.url.port };
  return usableName([port === '' ? host : `${host}-${port}`], path);
}

/** The first valid name, else a fallback. The endpoint path begins with at most one of the two fallbacks. */
const usableName = (names: readonly string[], path: string): string =>
  [...names, 'server', 'mcp-server'].find((each) => serverNameFault(each, path) === undefined) ?? 'server';

/** The last part of a path or package name, without version, tag and extension. */
function stem(word: string): string {
  const last = word.split(/[/\\]/).at(-1) ?? '';
  return last.replace(/[@:].*$/s, '').replace(/\.(?:[cm]?[jt]s|py|sh|exe|cmd)$/, '');
}
