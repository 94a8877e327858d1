/** A wrong configuration: its arguments, variables, and the text of `gangway.json`. */
export interface WrongConfiguration {
  readonly argv?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly file?: string;
}

const server = '"mcpServers": { "git": { "command": "x" } }';
const entry = (text: string): WrongConfiguration => ({ file: `{\n  "mcpServers": {\n    "git": ${text}\n  }\n}` });
const root = (text: string): WrongConfiguration => ({ file: `{\n  ${text},\n  ${server}\n}` });
const flags = (...argv: string[]): WrongConfiguration => ({ argv: [...argv, '--', 'x'] });
const line = (...argv: string[]): WrongConfiguration => ({ argv });

/** Mistakes that people make, each with the whole text that they get: the place, the cause and the remedy. */
export const mistakes: readonly (readonly [WrongConfiguration, string])[] = [
  [
    line(),
    'command line: names no server; use one of these forms:\n  mcp-gangway [options] -- <command> [args…]\n  mcp-gangway [options] <package> [args…]\n  mcp-gangway [options] <url>\n  mcp-gangway [options] --config <file>',
  ],
  [
    line('npx', '-y', 'some-server', '--port', '1'),
    "npx: unknown command; put -- before the server's command, and options of the gateway before --: mcp-gangway [options] -- npx …",
  ],
  [
    line('--port', '80', 'uvx', 'mcp-server-git'),
    "uvx: unknown command; put -- before the server's command, and options of the gateway before --: mcp-gangway [options] -- uvx …",
  ],
  [
    line('chekc', '--config', 'gangway.json'),
    "chekc: unknown command; did you mean check? Otherwise put -- before the server's command, and options of the gateway before --: mcp-gangway [options] -- chekc …",
  ],
  [
    line('confg', 'print'),
    "confg: unknown command; did you mean config? Otherwise put -- before the server's command, and options of the gateway before --: mcp-gangway [options] -- confg …",
  ],
  [line('config', 'pirnt'), 'config: must be followed by print or schema; did you mean print?'],
  [line('completion', 'bsh'), 'completion: must be followed by bash, zsh or fish; did you mean bash?'],
  [
    flags('--defaults.auth', 'upstream'),
    '--defaults.auth: is only for servers at a URL, but this server is a command; remove it',
  ],
  [
    line('--host', '0.0.0.0', '--defaults.auth', 'upstream', 'https://mcp.example.com/mcp'),
    "--defaults.auth: upstream needs --public-url if the gateway listens on other addresses than 127.0.0.1: clients read the gateway's URL in its metadata; set --public-url to this URL, such as https://gateway.example.com",
  ],
  [
    entry('{ "url": "wss://mcp.example.com/mcp", "auth": "upstream" }'),
    'gangway.json:3:50: mcpServers.git.auth: has auth upstream, which is only for servers at http(s):// URLs; remove it',
  ],
  [
    entry('{ "url": "https://mcp.example.com/mcp", "auth": "upstream", "headers": { "Authorization": "x" } }'),
    "gangway.json:3:52: mcpServers.git.auth: has auth upstream, with which the server gets the client's Authorization; remove Authorization from headers",
  ],
  [
    entry('{ "url": "https://mcp.example.com/mcp", "auth": "upstream", "share": "all" }'),
    'gangway.json:3:52: mcpServers.git.auth: has auth upstream and share all, with which users would share a session at the server; remove share',
  ],
  [
    root('"views": { "all": { "servers": ["git"], "seperator": "_" } }'),
    'gangway.json:2:43: views.all.seperator: is not a known key; did you mean separator?',
  ],
  [
    root('"views": { "all": { "servers": ["git"], "timeout": 5 } }'),
    'gangway.json:2:43: views.all.timeout: needs a unit, such as 30s, 1h30m or 250ms',
  ],
  [
    root('"views": { "all": { "servers": "git" } }'),
    'gangway.json:2:23: views.all.servers: must be a list of strings; put the string in square brackets: ["…"]',
  ],
  [
    root('"views": { "all": [] }'),
    'gangway.json:2:14: views.all: must name at least one server, such as { "servers": ["a", "b"] }',
  ],
  [
    root('"views": { "all": 5 }'),
    'gangway.json:2:14: views.all: must be a list of server names, or an object such as { "servers": ["a", "b"], "separator": "_" }',
  ],
  [line('key'), 'key: needs the name of a user: mcp-gangway key alice; a name has letters, digits and . _ @ + -'],
  [line('key', 'alice', '--scoep', 'x'), '--scoep: is not an option of mcp-gangway key; did you mean --scope?'],
  [
    line('key', 'alice', '--port', '1'),
    '--port: is not an option of mcp-gangway key; its options are --add, --scope and --expires',
  ],
  [
    line('key', 'alice', '--expires', 'soon'),
    '--expires: must be a time from now, such as 90d or 12h, or a time in the future, such as 2027-01-31T00:00:00Z',
  ],
  [
    line('key', 'alice', '--scope', 'a"b'),
    '--scope: must be a scope, such as gangway:status: visible characters without " and \\',
  ],
  [
    line('completion', 'bash', '--port', '1'),
    '--port: is not an option of mcp-gangway completion, which has no options; remove it',
  ],
  [
    line('--scope', 'x', '--', 'x'),
    '--scope: is only for mcp-gangway key; remove it, or run mcp-gangway key alice --scope <scope>',
  ],
  [line('--port', '1', 'key', 'alice'), 'key: must be the first word: mcp-gangway key …'],
  [
    line('http://a.example/mcp', 'http://b.example/mcp'),
    'argument 2 (b.example): is a second URL; list the servers in a file, { "mcpServers": { "a": { "url": "…" }, "b": { "url": "…" } } }, and use mcp-gangway --config <file>',
  ],
  [
    line('http://a.example/mcp', '--', 'x'),
    'command line: names servers in several ways: a command after -- and a URL; use only one of them',
  ],
  [flags('--prot', '8080'), '--prot: is not an option; did you mean --port?'],
  [flags('--port', 'http'), '--port: must be an integer from 0 to 65535; the default is 8080'],
  [flags('--port', '80800'), '--port: must be an integer from 0 to 65535; the default is 8080'],
  [flags('--port'), '--port: needs a value, such as --port 8080'],
  [flags('--port', '1', '--port', '2'), '--port: is given more than once, but has only one value; give it once'],
  [flags('--port', '1', '--listen.port', '2'), '--listen.port: sets the same option as --port; give only one of them'],
  [flags('--session-idle', '30'), '--session-idle: needs a unit, such as 30s, 1h30m or 250ms'],
  [
    flags('--session-idle', '30 min'),
    '--session-idle: must be a time such as 30s, 1h30m or 250ms (units: d, h, m, s, ms; the largest first); did you mean 30m?',
  ],
  [
    flags('--session-idle', '30m1h'),
    '--session-idle: must be a time such as 30s, 1h30m or 250ms (units: d, h, m, s, ms; the largest first); did you mean 1h30m?',
  ],
  [flags('--timeouts.drian', '5s'), '--timeouts.drian: is not an option; did you mean --timeouts.drain?'],
  [flags('--drain', '5s'), '--drain: is not an option; did you mean --timeouts.drain?'],
  [flags('--session-idle-ms', '1800000'), '--session-idle-ms: is not an option; did you mean --session-idle?'],
  [
    line('-y', 'foo'),
    "-y: is not an option of mcp-gangway; if it belongs to the server's command, put -- and that command before it, as in mcp-gangway -- npx -y …",
  ],
  [
    line('http://u:p@a.example'),
    "argument 1 (a.example): must not contain a user name or a password; write --header 'Authorization: Basic …' instead, with the Base64 of user:password",
  ],
  [flags('--drain-ms', 'S3CRET'), '--drain-ms: is not an option; did you mean --timeouts.drain?'],
  [flags('--no-sse'), '--no-sse: is not an option; did you mean --defaults.sse?'],
  [flags('--limits.request.body', '4194304'), '--limits.request.body: needs a unit, such as 64KiB, 4MiB or 512B'],
  [
    flags('--limits.request.body', '4X'),
    '--limits.request.body: must be a size such as 64KiB, 4MiB or 1GiB (units: B, KiB, MiB, GiB, TiB)',
  ],
  [flags('--limits.request.body', '1TiB'), '--limits.request.body: must be from 1B to 256MiB; the default is 4MiB'],
  [flags('--era', 'new'), '--era: must be auto, legacy or modern'],
  [flags('--share', 'shared'), '--share: must be auto, session, user, all or request'],
  [
    flags('--log-level', 'dbug'),
    '--log-level: names an unknown level; did you mean debug? (known levels: fatal, error, warn, info, debug, trace, silent; example: info,store=debug)',
  ],
  [
    flags('--log-level', 'info,stor=debug'),
    '--log-level: item 2 names an unknown part; did you mean store? (known parts: app, http, auth, session, modern, server, stderr, store; example: info,store=debug)',
  ],
  [
    flags('--redis', 'localhost:6379'),
    '--redis: is not a Redis URL; write redis://host:port, or rediss://, redis+sentinel:// or redis+cluster:// for TLS, Sentinel or Redis Cluster',
  ],
  [flags('--redis', '${file:/none}'), '--redis: refers to /none, which does not exist; create it, or correct the path'],
  [
    flags('--auth.required'),
    '--auth.required: requires authentication, but none is configured; set --api-keys-file, --auth.oauth.issuers or --auth.proxy.addresses, or remove this option; see https://github.com/mcp-gangway/mcp-gangway/blob/main/docs/authentication.md',
  ],
  [flags('--defaults.sse=nope'), '--defaults.sse: must be true or false'],
  [
    flags('--header', 'X: y'),
    '--header: is only for servers at a URL, but this server is a command; remove it, or use --env',
  ],
  [line('check', '--json=no', '--', 'x'), '--json: has no value; remove the text from ='],
  [flags('--ready'), '--ready: is only for mcp-gangway health; remove it, or run mcp-gangway health --ready'],
  [
    flags('--env', 'TOKEN'),
    '--env: must be KEY=VALUE, such as LOG_LEVEL=debug; to pass on a variable of the shell, write TOKEN="$TOKEN"',
  ],
  [
    flags('--defaults.process.user', '1000'),
    '--defaults.process.user: must be USER:GROUP as numeric ids, such as 1000:1000',
  ],
  [flags('--tls-cert', 'cert.pem'), '--tls-cert: needs --tls-key, the key of this certificate; set both'],
  [
    flags('--tls-cert', 'none.pem', '--tls-key', 'key.pem'),
    '--tls-cert: names none.pem, which does not exist; create it, or correct the path, which is relative to the current folder',
  ],
  [
    { argv: ['--tls-cert', 'gangway.json', '--tls-key', 'MC4CAQAwBQYDK2VwBCIEIA', '--', 'x'], file: '{}' },
    '--tls-key: names a file that does not exist; create it, or correct the path, which is relative to the current folder; if this is the text of a file, name a file with that text',
  ],
  [
    { argv: ['--api-keys-file', 'gangway.json', '--', 'x'], file: 'console.log(1);' },
    'gangway.json:1:1: is not JSON, so this is probably not a file of API keys; correct the path in --api-keys-file, or write such a file with mcp-gangway key alice --add FILE',
  ],
  [
    { argv: ['--api-keys-file', 'gangway.json', '--', 'x'], file: '{ "alice": "KEY" }' },
    'gangway.json: must be a list such as [{ "name": "alice", "sha256": "…" }]; mcp-gangway key alice --add FILE writes it',
  ],
  [
    { argv: ['--api-keys-file', 'gangway.json', '--', 'x'], file: '[{ "name": "alice", "sha256": "KEY" }]' },
    'gangway.json:1:21: [0].sha256: must be 64 hexadecimal digits; mcp-gangway key alice creates a key and its hash, and printf %s KEY | sha256sum prints the hash of an existing key',
  ],
  [
    { argv: ['--', 'x'], env: { GANGWAY_API_KEYS: `alice:${'k'.repeat(32)}` } },
    'GANGWAY_API_KEYS[0]: must be name:sha256:HASH, as mcp-gangway key alice prints it; printf %s KEY | sha256sum prints the hash of an existing key',
  ],
  [
    flags('--auth.oauth.issuers', 'https://issuer.example'),
    '--auth.oauth.issuers: needs --public-url: the gateway accepts only tokens for its own URL; set --public-url to a URL such as https://mcp.example.com',
  ],
  [
    flags('--auth.oauth.audiences', 'https://mcp.example.com'),
    '--auth.oauth.audiences: has no effect without --auth.oauth.issuers; set both, or remove this option',
  ],
  [
    flags('--limits.session.requests', 'many', '--limits.request.body', '1GiB'),
    '--limits.session.requests: must be an integer from 1 to 100000; the default is 256\n--limits.request.body: must be from 1B to 256MiB; the default is 4MiB',
  ],
  [
    flags('--timeouts.requestIdle', '9h'),
    '--timeouts.requestIdle: must not be larger than --timeouts.requestTotal, which is 6h: the time limit without progress would never be reached; change one of the two',
  ],
  [
    flags('--path', 'mcp'),
    '--path: must begin with / and contain only letters, digits and . _ ~ - between slashes, without a trailing slash, such as /mcp',
  ],
  [flags('--path', '/ws'), '--path: gives two endpoints the same path, /ws; change --path'],
  [
    flags('--name', 'a/b'),
    '--name: is not a valid server name; use 1 to 64 letters, digits, dots, underscores and hyphens, and no dot at the beginning',
  ],
  [
    flags('--auth.proxy.userHeader', 'x-user'),
    '--auth.proxy.userHeader: needs --auth.proxy.addresses, the addresses of the proxies that may send this header, such as 10.0.0.0/8; set both',
  ],
  [
    { argv: ['--', 'x'], env: { GANGWAY_PORT: 'tcp://10.0.0.1:80' } },
    'GANGWAY_PORT: is set by Kubernetes for a service of this name; set enableServiceLinks: false in the pod, or rename the service',
  ],
  [
    { argv: ['--config', 'none.json'] },
    '--config: names none.json, which does not exist; create it, or correct the path, which is relative to the current folder',
  ],
  [
    { argv: [], env: { GANGWAY_CONFIG: 'none.json' } },
    'GANGWAY_CONFIG: names none.json, which does not exist; create it, or correct the path, which is relative to the current folder',
  ],
  [
    { argv: [], env: { GANGWAY_CONFIG: '{ "mcpServers": { "a": { "command": "x --token S3CRET" } } }' } },
    'GANGWAY_CONFIG: must be the path of a file, but is the text of one; write the text into a file, and name the file',
  ],
  [
    flags('--api-keys-file', 'none.json'),
    '--api-keys-file: names none.json, which does not exist; create it with mcp-gangway key NAME --add FILE, or correct the path, which is relative to the current folder',
  ],
  [
    root('"auth": { "apiKeysFile": "none.json" }'),
    'gangway.json:2:13: auth.apiKeysFile: names none.json, which does not exist; create it with mcp-gangway key NAME --add FILE, or correct the path, which is relative to the current folder',
  ],
  [
    { argv: ['--config', '/etc/gangway.d'] },
    '--config: names /etc/gangway.d, which is a folder; name a file in that folder',
  ],
  [
    { argv: ['--config', 'gangway.yaml'], file: 'mcpServers:\n  git: {}' },
    'gangway.yaml: is YAML, but the gateway reads only JSON, also with comments; convert the file to JSON',
  ],
  [
    { argv: ['--config', 'gangway.toml'], file: '[mcpServers.git]' },
    'gangway.toml: is TOML, but the gateway reads only JSON, also with comments; convert the file to JSON',
  ],
  [
    flags('--timeouts.start', '5s'),
    '--timeouts.start: is a server option; use --defaults.timeouts.start for all servers, or set it in the entry of a server',
  ],
  [
    flags('--rerun', 'hints'),
    '--rerun: is a server option; use --defaults.rerun for all servers, or set it in the entry of a server',
  ],
  [
    flags('--probes.every', '5s'),
    '--probes.every: is a server option; use --defaults.probes.every for all servers, or set it in the entry of a server',
  ],
  [flags('--session-timeout', '5m'), '--session-timeout: is not an option; did you mean --session-idle?'],
  [
    root('"timeouts": { "start": "5s" }'),
    'gangway.json:2:17: timeouts.start: is a server option; for all servers, write "defaults": { "timeouts": { "start": … } }',
  ],
  [
    root('"probes": { "every": "5s" }'),
    'gangway.json:2:3: probes: is a server option; for all servers, write "defaults": { "probes": … }',
  ],
  [
    root('"include": "${DIR:-inc}"'),
    'gangway.json:2:3: include: includes inc, which does not exist; create it, or correct the path, which is relative to the folder of this file',
  ],
  [
    root('"include": "${DIR}"'),
    'gangway.json:2:3: include: the environment variable DIR is not set; set it, or write ${DIR:-default}',
  ],
  [
    entry('{ "command": "x", "credentials": { "USER_ID": "{claim:sub}" } }'),
    'gangway.json:3:30: mcpServers.git.credentials: uses {claim:…}, which needs authentication of clients; set auth.oauth.issuers, auth.apiKeysFile or auth.proxy.userHeader, or remove the claim',
  ],
  [
    root('"defaults": { "credentials": { "USER_ID": "{claim:sub}" } }'),
    'gangway.json:2:17: defaults.credentials: uses {claim:…}, which needs authentication of clients; set auth.oauth.issuers, auth.apiKeysFile or auth.proxy.userHeader, or remove the claim',
  ],
  [
    entry('{ "command": "x", "scopes": { "required": ["a"] } }'),
    'gangway.json:3:42: mcpServers.git.scopes.required: requires scopes, which need authentication; set auth.oauth.issuers, auth.apiKeysFile or auth.proxy.userHeader',
  ],
  [
    { argv: ['--', 'x'], env: { GANGWAY_API_KEYS: '${file:none.txt}' } },
    'GANGWAY_API_KEYS: refers to none.txt, which does not exist; create it, or correct the path, which is relative to the current folder',
  ],
  [
    { argv: ['--config', 'gangway.json', '--', 'x'], file: `{ ${server} }` },
    'command line: names servers in several ways: a command after -- and --config; use only one of them',
  ],
  [
    { file: '{\n  "mcpServers": {,}\n}' },
    'gangway.json:2:18: is not valid JSON: a value is missing before this comma; add it, or remove the comma',
  ],
  [
    { file: '{\n  mcpServers: {}\n}' },
    'gangway.json:2:3: is not valid JSON: nothing in JSON begins like this; strings and keys need double quotes, and comments begin with //',
  ],
  [
    { file: '{ "listen": { "port": 1 } }' },
    'gangway.json: has no mcpServers; add "mcpServers": { "NAME": { "command": "…" } }',
  ],
  [root('"listen": { "prot": 1 }'), 'gangway.json:2:15: listen.prot: is not a known key; did you mean port?'],
  [root('"port": 1'), 'gangway.json:2:3: port: is not a known key; did you mean listen.port?'],
  [root('"drainMs": 5000'), 'gangway.json:2:3: drainMs: is not a known key; did you mean timeouts.drain?'],
  [
    root('"timeouts": { "drain": 5000 }'),
    'gangway.json:2:17: timeouts.drain: needs a unit, such as 30s, 1h30m or 250ms',
  ],
  [
    root('"timeouts": "5s"'),
    'gangway.json:2:3: timeouts: must be an object such as { "sessionIdle": "30m", "requestIdle": "10m" }',
  ],
  [
    root('"limits": { "request": { "body": "4 bananas" } }'),
    'gangway.json:2:28: limits.request.body: must be a size such as 64KiB, 4MiB or 1GiB (units: B, KiB, MiB, GiB, TiB)',
  ],
  [
    root('"listen": { "port": "${NOPE}" }'),
    'gangway.json:2:15: listen.port: the environment variable NOPE is not set; set it, or write ${NOPE:-default}',
  ],
  [
    root('"sse": false'),
    'gangway.json:2:3: sse: must be an object such as { "heartbeat": "15s", "streamAfter": "100ms" }; for the option defaults.sse, write "defaults": { "sse": false }',
  ],
  [
    root('"include": "servers.d"'),
    'gangway.json:2:3: include: includes servers.d, which does not exist; create it, or correct the path, which is relative to the folder of this file',
  ],
  [
    root('"listen": { "port": 1 },\n  "listen": { "port": 2 }'),
    'gangway.json:3:3: is not valid JSON: the key listen appears twice in its object, first in line 2; merge the two, or remove one',
  ],
  [entry('{ "comand": "x" }'), 'gangway.json:3:14: mcpServers.git.comand: is not a known key; did you mean command?'],
  [
    entry('{ "command": "x", "startTimeoutMs": 5 }'),
    'gangway.json:3:30: mcpServers.git.startTimeoutMs: is not a known key; see https://github.com/mcp-gangway/mcp-gangway/blob/main/docs/reference/configuration.md',
  ],
  [
    entry('{ "command": "x", "args": "a b" }'),
    'gangway.json:3:30: mcpServers.git.args: must be a list of strings, such as ["-y", "some-server"]',
  ],
  [
    entry('{ "command": "x", "args": ["a", 1] }'),
    'gangway.json:3:44: mcpServers.git.args[1]: must be a string; put it in double quotes',
  ],
  [
    entry('{ "command": "x", "env": { "TOKEN": "${TOKEN}" } }'),
    'gangway.json:3:39: mcpServers.git.env.TOKEN: the environment variable TOKEN is not set; set it, or write ${TOKEN:-default}',
  ],
  [
    entry('{ "command": "x", "env": { "TOKEN": "${input:token}" } }'),
    'gangway.json:3:39: mcpServers.git.env.TOKEN: ${input:…} is not supported; use ${VAR}, ${VAR:-default} or ${file:/path}',
  ],
  [
    entry('{ "command": "x", "envFile": ".env" }'),
    'gangway.json:3:30: mcpServers.git.envFile: is not supported; write each variable into env, such as "env": { "TOKEN": "${TOKEN}" }',
  ],
  [
    entry('{ "command": "x", "includeTools": ["a"] }'),
    'gangway.json:3:30: mcpServers.git.includeTools: is not supported, because it limits the tools for one client; to limit them for all clients, replace it with "allowTools": […]',
  ],
  [
    entry('{ "command": "x", "excludeTools": ["a"] }'),
    'gangway.json:3:30: mcpServers.git.excludeTools: is not supported, because it limits the tools for one client; to limit them for all clients, replace it with "denyTools": […]',
  ],
  [
    entry('{ "command": "x", "sandboxEnabled": true }'),
    'gangway.json:3:30: mcpServers.git.sandboxEnabled: is not supported: the gateway would run the server without a sandbox; remove this key, and run the server in a container, such as "command": "docker", "args": ["run", "-i", "--rm", "IMAGE"]',
  ],
  [
    entry('{ "url": "https://a.example", "headersHelper": "get-token.sh" }'),
    'gangway.json:3:42: mcpServers.git.headersHelper: is not supported, because the gateway runs no program for headers; let the program write the value to a file, and replace this key with the header, such as "headers": { "Authorization": "${file:/run/token}" }; the gateway reads the file when it starts or gets SIGHUP; if the value is an OAuth token that expires, write identity instead',
  ],
  [
    entry('{ "url": "https://a.example", "oauth": { "clientId": "x" } }'),
    'gangway.json:3:42: mcpServers.git.oauth: is not supported, because the gateway does not log in for a user; write "auth": "upstream" in its place, and each client will log in to the server by itself; or write identity, and the gateway will get tokens for the server',
  ],
  [
    entry('{ "url": "https://a.example", "auth": { "CLIENT_SECRET": "S3CRET" } }'),
    'gangway.json:3:42: mcpServers.git.auth: must not be an object, because the gateway does not log in for a user; write "auth": "upstream" in its place, and each client will log in to the server by itself; or write identity, and the gateway will get tokens for the server',
  ],
  [
    entry('{ "command": "x", "enabled": false }'),
    'gangway.json:3:30: mcpServers.git.enabled: is not supported; write "disabled": true instead',
  ],
  [
    entry('{ "url": "https://a.example", "type": "ws" }'),
    'gangway.json:3:42: mcpServers.git.type: is for a WebSocket, but the server has no ws:// or wss:// URL; correct the url, or remove type',
  ],
  [
    entry('{ "command": "x", "args": ["${workspaceFolder}"] }'),
    'gangway.json:3:39: mcpServers.git.args[0]: ${workspaceFolder} is a variable of editors, which the gateway does not have; write the path of the folder',
  ],
  [
    entry('{ "command": "${userHome}/x" }'),
    'gangway.json:3:14: mcpServers.git.command: ${userHome} is a variable of editors, which the gateway does not have; write ${HOME}',
  ],
  [
    entry('{ "command": "x", "probes": 5 }'),
    'gangway.json:3:30: mcpServers.git.probes: must be an object such as { "every": "30s", "required": true }',
  ],
  [
    entry('{ "command": "x", "url": "http://a.example" }'),
    'gangway.json:3:14: mcpServers.git.command: is only for servers without a url; remove command, or the url',
  ],
  [
    entry('{ "type": "http", "command": "x" }'),
    'gangway.json:3:14: mcpServers.git.type: is "http", but the server has no url; add a url, or remove type',
  ],
  [
    entry('{ "url": "http://u:p@a.example" }'),
    'gangway.json:3:14: mcpServers.git.url: must not contain a user name or a password; write "headers": { "Authorization": "Basic …" } instead, with the Base64 of user:password',
  ],
  [
    entry('{ "url": "https://a.example", "headers": { "Host": "b" } }'),
    'gangway.json:3:42: mcpServers.git.headers: must not have host, which the gateway sets itself; remove it',
  ],
  [
    entry('{ "command": "x", "port": 1 }'),
    'gangway.json:3:30: mcpServers.git.port: is an option of the gateway, not of a server; set listen.port at the top level',
  ],
  [
    entry('"x"'),
    'gangway.json:3:5: mcpServers.git: must be an object such as { "command": "…", "args": […] } or { "url": "…" }',
  ],
  [
    entry('{ "command": "x", "env": ["A=b"] }'),
    'gangway.json:3:30: mcpServers.git.env: must be an object of strings, such as { "LOG_LEVEL": "debug" }',
  ],
  [
    entry('{ "command": ["node", "x.js"] }'),
    'gangway.json:3:14: mcpServers.git.command: must be a string; put the arguments into "args", such as "command": "node", "args": ["server.js"]',
  ],
  [
    entry('{ "command": "C:\\tools\\node.exe" }'),
    'gangway.json:3:14: mcpServers.git.command: has a control character, such as a tab or NUL; for the backslash of a path, write two backslashes',
  ],
  [
    entry('{ "command": "x", "disabled": "true" }'),
    'gangway.json:3:30: mcpServers.git.disabled: must be true or false, without quotes',
  ],
  [
    root('"listen": { "port": "8080" }'),
    'gangway.json:2:15: listen.port: must be an integer from 0 to 65535, without quotes; the default is 8080',
  ],
  [
    root('"listen": { "allowedOrigins": "https://a.example" }'),
    'gangway.json:2:15: listen.allowedOrigins: must be a list of strings; put the string in square brackets: ["…"]',
  ],
  [
    root('# a comment'),
    'gangway.json:2:3: is not valid JSON: nothing in JSON begins like this; strings and keys need double quotes, and comments begin with //',
  ],
  [
    entry('{ "command": "x", "env": { "A": "${TOKEN" } }'),
    'gangway.json:3:39: mcpServers.git.env.A: has ${ without a closing brace; write ${VAR}, ${VAR:-default} or ${file:/path}',
  ],
  [
    entry('{ "command": "x", "env": { "A": "${file:/etc/gangway.d}" } }'),
    'gangway.json:3:39: mcpServers.git.env.A: refers to /etc/gangway.d, which is a folder; name a file in that folder',
  ],
  [
    line('gangway.json'),
    'gangway.json: unknown command; for a configuration file, write mcp-gangway --config gangway.json',
  ],
  [
    {
      argv: ['--config', 'gangway.json'],
      file: '{ "mcpServers": { "a": { "command": "x", "tools": { "echo": { "descripton": "Says it" } } } } }',
    },
    'gangway.json:1:63: mcpServers.a.tools.echo.descripton: is not a known key; the keys are name, title, description and arguments; did you mean description?',
  ],
  [
    {
      argv: ['--config', 'gangway.json'],
      file: '{ "mcpServers": { "a": { "command": "x", "onExit": "end" } }, "defaults": { "hibernateAfter": "1m" } }',
    },
    'gangway.json:1:42: mcpServers.a.onExit: has hibernateAfter and onExit end, but hibernation needs restore; remove one of the two options',
  ],
];
