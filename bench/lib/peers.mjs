// The gateways of others that ours is compared with. Those of npm are in the lock file of bench/, and are installed when they are first asked
// for. The others are installed by hand into the folder that BENCH_PEERS names, each by its `install`; what is missing is left out.

import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { UsageError } from './command.mjs';

const bench = path.join(path.dirname(fileURLToPath(import.meta.url)), '..');
const modules = path.join(bench, 'node_modules');
const folder = path.resolve(process.env.BENCH_PEERS ?? path.join(bench, 'peers'));
const installLimitMs = 300_000;

const quote = (word) => `'${word.replaceAll("'", `'\\''`)}'`;
const lineOf = (command) => command.map(quote).join(' ');

/** A package of npm. */
const ofNpm = (name, program, words, more) => ({
  version: () => {
    const file = path.join(modules, name, 'package.json');
    return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).version : undefined;
  },
  install: 'npm ci --prefix bench --ignore-scripts',
  prepare: installPeers,
  words: (at) => [path.join(modules, name, program), ...words(at)],
  ...more,
});

/** A package of PyPI, in a virtual environment of its own. `words`: the arguments of Python. */
const ofPyPi = (name, { package: packageName, version }, words, more) => ({
  program: path.join(folder, name, 'bin/python'),
  version: () => {
    const lib = path.join(folder, name, 'lib');
    if (!existsSync(lib)) return undefined;
    const info = new RegExp(`^${packageName.replaceAll('-', '_')}-([^-]*)\\.dist-info$`);
    const packages = readdirSync(lib).flatMap((python) => readdirSync(path.join(lib, python, 'site-packages')));
    return packages.map((entry) => info.exec(entry)?.[1]).find(Boolean);
  },
  install: `python3 -m venv $BENCH_PEERS/${name} && $BENCH_PEERS/${name}/bin/pip install ${packageName}==${version}`,
  words,
  ...more,
});

/** A program that is built from source. `version`: of what was built, which not all of them say. */
const ofSource = (name, { version, install }, words, more) => ({
  program: path.join(folder, name),
  version: () => (existsSync(path.join(folder, name)) ? version : undefined),
  install,
  words,
  ...more,
});

/** FastMCP is a library: this is the proxy of its documentation. */
const fastmcpProxy = `import sys
from fastmcp.server import create_proxy
port, *command = sys.argv[1:]
proxy = create_proxy({"mcpServers": {"server": {"command": command[0], "args": command[1:]}}}, name="proxy")
options = {"access_log": False}
proxy.run(transport="http", host="127.0.0.1", port=int(port), show_banner=False, log_level="WARNING", uvicorn_config=options)
`;

const tbxarkConfig = ({ port }, { command: [program, ...args] }) => ({
  mcpProxy: {
    ...{ baseURL: `http://127.0.0.1:${port}`, addr: `127.0.0.1:${port}`, name: 'bench', version: '1' },
    ...{ type: 'streamable-http', options: { panicIfInvalid: true, logEnabled: false } },
  },
  mcpServers: { server: { command: program, args } },
});

const joshConfig = ({ port }, { command: [program, ...args] }) => `[proxy]
name = "bench"
separator = ""
[proxy.listen]
host = "127.0.0.1"
port = ${port}
[observability]
log_level = "error"
[[backends]]
name = ""
transport = "stdio"
command = ${JSON.stringify(program)}
args = ${JSON.stringify(args)}
`;

/** The translator of ContextForge starts only with secrets, which it does not use. */
const contextforgeSecrets = () =>
  Object.fromEntries(
    [
      ...['JWT_SECRET_KEY', 'AUTH_ENCRYPTION_SECRET', 'BASIC_AUTH_PASSWORD', 'PLATFORM_ADMIN_PASSWORD'],
      'DEFAULT_USER_PASSWORD',
    ].map((name) => [name, `${randomBytes(24).toString('base64')}aA1!`]),
  );

const all = {
  supergateway: ofNpm(
    'supergateway',
    'dist/index.js',
    ({ port, command }) => [
      ...['--stdio', lineOf(command), '--outputTransport', 'streamableHttp', '--stateful'],
      ...['--logLevel', 'none', '--port', port],
    ],
    { nodeOptions: ['--import', path.join(bench, 'targets/loopback-only.mjs')], language: 'TypeScript' },
  ),
  'mcp-proxy': ofNpm(
    'mcp-proxy',
    'dist/bin/mcp-proxy.mjs',
    ({ port, command }) => ['--server', 'stream', '--host', '127.0.0.1', '--port', port, '--', ...command],
    { title: 'mcp-proxy (npm)', language: 'TypeScript' },
  ),
  'mcp-proxy-python': ofPyPi(
    'mcp-proxy-python',
    { package: 'mcp-proxy', version: '0.13.0' },
    ({ port, command }) => [
      ...['-m', 'mcp_proxy', '--host', '127.0.0.1', '--port', port, '--log-level', 'ERROR'],
      ...['--', ...command],
    ],
    { title: 'mcp-proxy (PyPI)', language: 'Python' },
  ),
  fastmcp: ofPyPi(
    'fastmcp',
    { package: 'fastmcp', version: '4.2.3' },
    ({ port, folder: own, command }) => [path.join(own, 'proxy.py'), port, ...command],
    { title: 'FastMCP proxy', language: 'Python', files: () => ({ 'proxy.py': fastmcpProxy }) },
  ),
  contextforge: ofPyPi(
    'contextforge',
    { package: 'mcp-contextforge-gateway', version: '1.1.0' },
    ({ port, command }) => [
      ...['-m', 'mcpgateway.translate', '--stdio', lineOf(command), '--expose-streamable-http'],
      ...['--host', '127.0.0.1', '--port', port, '--logLevel', 'error'],
    ],
    { title: 'ContextForge translate', language: 'Python', variables: contextforgeSecrets },
  ),
  tbxark: ofSource(
    'tbxark-mcp-proxy',
    {
      version: '4f78891 (2026-02-19)',
      install:
        'git clone https://github.com/TBXark/mcp-proxy && cd mcp-proxy && git checkout 4f78891 && go build -o $BENCH_PEERS/tbxark-mcp-proxy .',
    },
    ({ folder: own }) => ['-config', path.join(own, 'config.json')],
    {
      ...{ title: 'TBXark mcp-proxy', language: 'Go', path: '/server/mcp' },
      files: (at, places) => ({ 'config.json': JSON.stringify(tbxarkConfig(at, places)) }),
    },
  ),
  joshrotenberg: ofSource(
    'joshrotenberg-mcp-proxy',
    {
      version: '0.6.0',
      install:
        'cargo install --locked mcp-proxy@0.6.0 --root $BENCH_PEERS/cargo && mv $BENCH_PEERS/cargo/bin/mcp-proxy $BENCH_PEERS/joshrotenberg-mcp-proxy',
    },
    ({ folder: own }) => ['--config', path.join(own, 'proxy.toml')],
    {
      ...{ title: 'joshrotenberg mcp-proxy', language: 'Rust', path: '/' },
      files: (at, places) => ({ 'proxy.toml': joshConfig(at, places) }),
    },
  ),
};

/**
 * By name, as targets (targets.mjs). `title`: what pages call it. `version()`: of what is installed, undefined if it is not. `install`: the
 * command that installs it.
 */
export const peers = Object.fromEntries(
  Object.entries(all).map(([name, { words, ...peer }]) => [
    name,
    { isPeer: true, title: name, argv: (at, { command }) => words({ ...at, command }), ...peer },
  ]),
);

/** Installs what bench/package-lock.json pins, without running any install script. Throws if that fails. */
export function installPeers() {
  if (existsSync(path.join(modules, '.package-lock.json'))) return;
  const { status, error } = spawnSync('npm', ['ci', '--ignore-scripts'], {
    cwd: bench,
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: installLimitMs,
  });
  if (status !== 0)
    throw new UsageError(`npm ci in bench failed (${error?.message ?? status}): peers come from the registry of npm`);
}
