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

/** Derives a server's name from its command: `npx -y @scope/server-x@1` → `server-x`, `node dist/foo.js` → `foo`. */
export function deriveServerName([command = '', ...args]: readonly string[], path: string): string {
  const program = stem(command);
  const target = args.find((argument) => !argument.startsWith('-') && !subcommands.includes(argument));
  const derived = launchers.test(program) ? stem(target ?? '') : program;
  return usableName(derived, path);
}

/** Derives a server's name from its address: the host, or the file name of its socket without the extension. */
export function nameOfAddress(address: ServerAddress, path: string): string {
  if (address.transport === 'unix') return usableName(stem(address.path).replace(/\.sock(?:et)?$/, ''), path);
  if (address.transport === 'view') return usableName('', path);
  return usableName(address.transport === 'tcp' ? address.host : address.url.hostname, path);
}

/** The name if it is valid, else a fallback. The endpoint path begins with at most one of the two fallbacks. */
const usableName = (name: string, path: string): string =>
  [name, 'server', 'mcp-server'].find((each) => serverNameFault(each, path) === undefined) ?? 'server';

/** The last part of a path or package name, without version, tag and extension. */
function stem(word: string): string {
  const last = word.split(/[/\\]/).at(-1) ?? '';
  return last.replace(/[@:].*$/s, '').replace(/\.(?:[cm]?[jt]s|py|sh|exe|cmd)$/, '');
}
