import { forms } from './command-line.ts';
import { apiKeysVariable, configFileVariable } from './environment.ts';
import type { Option } from './option-kinds.ts';
import { environmentNameOf, flagOf } from './option-names.ts';
import { globalOptions, type OptionTable, orderedPairs, serverOptions } from './options.ts';

/** The example of a configuration file in the reference; a test reads it as one. */
export const exampleFile = `{
  "port": 8080,
  "allowOrigin": ["https://app.example.com"],
  "mcpServers": {
    "everything": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-everything"],
      "warm": 1
    },
    "git": {
      "command": "uvx mcp-server-git --repository \${HOME}/project",
      "env": { "GIT_AUTHOR_NAME": "\${AUTHOR:-gateway}" },
      "startTimeoutMs": 120000
    },
    "notes": {
      "command": "node",
      "args": ["dist/notes.js"],
      "cwd": "/srv/notes",
      "disabled": true
    },
    "tickets": {
      "url": "https://mcp.example.com/sse",
      "transport": "sse",
      "headers": { "Authorization": "Bearer \${TICKETS_TOKEN:-none}" }
    },
    "maps": { "url": "tcp://maps:9000" }
  }
}`;

/** `docs/configuration.md`, from the table of options; `scripts/write-reference.mjs` writes it. */
export function renderReference(): string {
  return `<!-- Generated from src/app/configuration/options.ts: npm run build && node scripts/write-reference.mjs -->

# Configuration

## Command line

\`\`\`
${[...forms, 'mcp-gangway check [--json] [the same]', 'mcp-gangway key <name>', 'mcp-gangway --help | --help all | check --help | key --help | --version'].join('\n')}
\`\`\`

The first form serves one STDIO server. The command is started without a shell; a single argument with blanks, as in
\`-- "npx -y some-server"\`, is split as a shell splits words, unless a file has that very name. The server's name is taken
from the command.

A \`<url>\` is a server that runs by itself:

| URL | What is spoken there |
| --- | --- |
| \`http://…\`, \`https://…\` | Streamable HTTP (2025-03-26 to 2026-07-28), or HTTP+SSE (2024-11-05), whose URL is that of the stream. Which of them is found out when a client first needs it; \`--transport http\` or \`sse\` says it. |
| \`ws://…\`, \`wss://…\` | WebSocket with the subprotocol \`mcp\`, one connection for each session. |
| \`tcp://host:port\` | The lines of STDIO on a TCP connection: one for each session, one for all clients of 2026-07-28 if the server speaks that. |
| \`unix:///path\` | The same on a Unix socket. |

A URL must not hold a user name or password; credentials are headers. A server that refuses whoever has none is not to be tried with
\`check\` or at the start where only \`--forward-header\` brings them, and a client without them is told that the server could not be started: its 401,
and what it says of authorization, do not reach the client.
\`mcp-gangway --header 'X-Team: tools' https://mcp.example.com/sse\`

With \`--config\`, each server of the file is at \`/<name>\` followed by \`path\`, and a single one also at \`path\` itself.
Clients that speak only HTTP+SSE (2024-11-05) find it in the same way at \`ssePath\`, those on WebSocket at \`wsPath\`
([websocket.md](websocket.md)).
\`check\` takes the same arguments, tries each server and ends. \`key\` makes an API key ([authentication.md](authentication.md)).

## Where values come from

For each option the first of these that gives it: the command line, the environment, the file, the default. A list is
taken whole from that one place. Options for one server that are given on the command line, in the environment or at the
top of the file hold for every server that does not set its own; \`env\` is merged, and the server's own variables win.

All faults of a configuration are told at once, each with its place, and never with a value.

## Global options

${optionTable(globalOptions)}

${orderedPairs.map(([smaller, larger, reason]) => `\`${smaller}\` must not be larger than \`${larger}\`: ${reason}.`).join('\n')}

## Options of one server

${optionTable(serverOptions)}

A server gets only HOME, LANG, LC_*, LOGNAME, PATH, SHELL, TERM, TMPDIR, TZ and USER of the gateway's environment, and
what \`env\` adds.

Headers of clients reach no server unless \`forwardHeaders\` names them. A message goes with those of the request that brought it, and with none if that
had none; what the gateway asks the server by itself, such as a stream, goes with the client's newest. They cannot be combined with \`warm\`, nor
stand in \`headers\` as well, and have no more than 8 KiB in all. \`mcp-gangway --forward-header Authorization https://mcp.example.com/mcp\`

What \`credentials\` names is required of every client: \`{header:X-Token}\` of its request, or \`{claim:sub}\` of its verified token, with text around it. A
STDIO server has it in its environment, a server at an \`http(s)://\` or \`ws(s)://\` URL in a header: [credentials.md](credentials.md).

Headers and certificates are for \`http(s)://\` and \`ws(s)://\` servers, the times of HTTP+SSE for \`http(s)://\` alone. Headers of a
server stand in place of those for all servers. The endpoint that an HTTP+SSE server names must have the origin of its URL, and no redirect is followed.

## Environment

Each option is a variable, named in the tables above. Lists and \`env\` are separated by commas there, so that a value of
\`${environmentNameOf('env')}\` cannot contain one; headers are separated by line breaks. An empty variable counts as not set. \`${configFileVariable}\` names the file when the command
line names no server. \`${apiKeysVariable}\` holds API keys as \`name:sha256:hash\` or \`name:key\`, separated by commas. \`REDIS_URL\` is read as \`GANGWAY_REDIS\` where that is not set.

In Kubernetes, a service named \`gangway\` makes \`${environmentNameOf('port')}=tcp://…\` appear in every pod: set \`enableServiceLinks: false\`.

## File

A JSON object with any of the options above by their keys, and with \`mcpServers\` (or \`servers\`, as VS Code calls it) as MCP
clients have it:

\`\`\`json
${exampleFile}
\`\`\`

| Key of a server | Meaning |
| --- | --- |
| \`command\` | Program to start. Without \`args\`, a command with blanks is split as a shell splits words, unless a file has that very name. |
| \`args\` | List of its arguments. |
| \`url\` | URL of a remote server, in place of \`command\`; see the table at the top. |
| \`type\` | \`stdio\`, \`http\` (also \`streamable-http\`) or \`sse\`, or left out; the last two are the same as \`transport\`. |
| \`disabled\` | \`true\` leaves the server out. |
| options of one server | As above. |

\`autoApprove\`, \`alwaysAllow\`, \`timeout\` and \`description\` of a server, and \`inputs\` and \`$schema\` at the top, are ignored. Any
other key is a fault. A server's name has 1 to 64 letters, digits, dots, underscores and hyphens, does not begin with a dot,
and is not \`healthz\`, \`readyz\`, \`metrics\` or the first segment of \`path\`.

In all strings of a server, \`\${VAR}\` is replaced by the gateway's environment variable, and \`\${VAR:-default}\` by the default where
the variable is not set or empty. A variable that is not set and has no default is a fault. A command is split after that.

## Exit codes

| Code | Meaning |
| --- | --- |
| 0 | Ended in order after SIGTERM or SIGINT; \`key\`; \`check\` found every server well; \`--help\` and \`--version\`. |
| 1 | It could not run: the command of the single server cannot be started or the server not be reached, the port is taken, \`check\` found a fault. |
| 2 | The configuration is wrong. |
`;
}

function optionTable(table: OptionTable): string {
  return [
    '| Command line, environment, file | Default | Allowed | Meaning |',
    '| --- | --- | --- | --- |',
    ...Object.entries(table).map(([key, option]) =>
      [
        '',
        ` \`${flagOf(key)}\` \`${environmentNameOf(key)}\` \`${key}\` `,
        ` ${renderDefault(key, option)} `,
        option.bounds === '' ? ' ' : ` ${option.bounds} `,
        ` ${option.description} `,
        '',
      ].join('|'),
    ),
  ].join('\n');
}

/** A default, with a larger unit beside it where the plain number is hard to read. */
function renderDefault(key: string, { default: value }: Option): string {
  if (typeof value === 'number') {
    const units = key.endsWith('Bytes') ? byteUnits : key.endsWith('Ms') ? timeUnits : [];
    const unit = units.find(([size]) => value >= size && value % size === 0);
    return unit === undefined ? `\`${value}\`` : `\`${value}\` (${value / unit[0]} ${unit[1]})`;
  }
  return typeof value === 'string' || typeof value === 'boolean' ? `\`${value}\`` : 'none';
}

const byteUnits = [[1024 * 1024, 'MiB']] as const;
const timeUnits = [
  [60_000, 'min'],
  [1000, 's'],
] as const;
