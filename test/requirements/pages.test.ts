import { expect, it } from 'vitest';
import { floor } from './floor.ts';
import { gateFindings } from './gate-findings.ts';
import { clientFloodRows, floodRows, floodsAtLimit, type GateRow, workLimits } from './gates.ts';
import { advisories } from './hardening-advisories.ts';
import { faults } from './hardening-faults.ts';
import { inputs } from './hardening-inputs.ts';
import { properties } from './hardening-properties.ts';
import type { ProtocolRequirement, Requirement } from './requirement.ts';
import { requirements } from './requirements.ts';

/** Writes the pages for readers: `npx vitest run test/requirements/pages.test.ts --update`. */

const specification = 'https://modelcontextprotocol.io/specification';

/** What the sources of the protocol's requirements are called in the lists, and where they are. */
const sources: readonly (readonly [name: string, text: string])[] = [
  ['S26', `[2026-07-28, Streamable HTTP](${specification}/2026-07-28/basic/transports/streamable-http)`],
  ['STD26', `[2026-07-28, stdio](${specification}/2026-07-28/basic/transports/stdio)`],
  ['VER', `[2026-07-28, versioning](${specification}/2026-07-28/basic/versioning)`],
  ['BAS', `[2026-07-28, basic](${specification}/2026-07-28/basic)`],
  ['MRTR', `[2026-07-28, multi-round-trip requests](${specification}/2026-07-28/basic/patterns/mrtr)`],
  ['SUB', `[2026-07-28, subscriptions](${specification}/2026-07-28/basic/patterns/subscriptions)`],
  ['CAN', `[2026-07-28, cancellation](${specification}/2026-07-28/basic/patterns/cancellation)`],
  ['CACHE', `[2026-07-28, caching](${specification}/2026-07-28/server/utilities/caching)`],
  ['LOG', `[2026-07-28, logging](${specification}/2026-07-28/server/utilities/logging)`],
  ['RES', `[2026-07-28, resources](${specification}/2026-07-28/server/resources)`],
  [
    'T25',
    `[2025-11-25, transports](${specification}/2025-11-25/basic/transports). The revisions 2025-06-18 and 2025-03-26 have the same requirements.`,
  ],
  ['B0326', `[2025-03-26, batching](${specification}/2025-03-26/basic)`],
  ['SSE24', `[2024-11-05, transports](${specification}/2024-11-05/basic/transports)`],
  [
    'V2',
    'The official TypeScript SDK, version 2. The specification does not require this behaviour, but clients in use depend on it.',
  ],
];

const sections: readonly string[] = [
  'One endpoint, two eras',
  'The modern era over HTTP: the gateway as server',
  'Results in the modern era',
  'Multi-round-trip requests',
  'Subscriptions',
  'stdio: the gateway as client',
  'The legacy era over HTTP: the gateway as server',
  'HTTP+SSE servers, and old clients',
  'What the official SDKs need',
];

const generated = '<!-- Generated from test/requirements; npx vitest run test/requirements/pages.test.ts --update -->';

const row = (...cells: readonly string[]): string =>
  `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;

/** Words of requirements are plain text, in which Markdown must find nothing. */
const plain = (text: string): string =>
  text.replaceAll('<', '&lt;').replace(/[*]|__/g, (found) => found.replace(/./g, '\\$&'));

const anchored = (id: string): string => `<a id="${id.toLowerCase()}"></a>${id}`;

const isProtocols = (requirement: Requirement): requirement is ProtocolRequirement => 'level' in requirement;

/** A table of requirements. A remark tells why no test can show one. */
function tableOf(list: readonly Requirement[]): string {
  const withSource = list.some(({ source }) => source !== undefined);
  const rows = list.map((requirement) => {
    const { id, text, source = '', untested } = requirement;
    const remark = untested === undefined ? '' : ` *Without a test: ${plain(untested)}*`;
    const level = isProtocols(requirement) ? [requirement.level] : [];
    return row(anchored(id), `${plain(text)}${remark}`, ...level, ...(withSource ? [source] : []));
  });
  const head = ['', 'Requirement', ...(list.some(isProtocols) ? ['Level'] : []), ...(withSource ? ['Source'] : [])];
  return [row(...head), row(...head.map(() => '---')), ...rows].join('\n');
}

function renderProtocol(): string {
  const parts = sections.map((title, index) => {
    const own = requirements.filter(({ id }) => id.startsWith(`R${index + 1}.`));
    return `## ${index + 1}. ${title}\n\n${tableOf(own)}\n`;
  });
  return `${generated}

# Protocol requirements

This page lists the MCP requirements that apply to a gateway. Each requirement has one or two testable sentences. The gateway
acts as a server for HTTP clients and as a client of the servers behind it, so both sets of requirements apply. Tests cite a
requirement by its id, for example \`it('[R7.04] …')\`. The build fails if a requirement is not cited by any test.

*Level* is the level in the source: MUST, SHOULD or MAY. V2 marks behaviour that the official SDKs depend on.

${row('Source', 'Document')}
${row('---', '---')}
${sources.map((source) => row(...source)).join('\n')}

${parts.join('\n')}`;
}

/** Tables of what peers name, and the limits that hold them. */
const tables: readonly (readonly string[])[] = [
  [
    'resource subscriptions of a session, of a session in a shared process, and of a session of a view',
    '500',
    '2 KiB',
    '1 MiB',
    'refuses: `too_many_subscriptions`, `uri_too_long`',
  ],
  [
    'requests that are replayed to a new process',
    '501',
    '4 KiB',
    '2 MiB',
    'keeps a plain request with the URI or the level',
  ],
  ['resources of one `subscriptions/listen`', '500', '2 KiB', '256 KiB', 'refuses: `filter_too_large`'],
  [
    'names that a client may call behind a filter',
    '100,000',
    '1 KiB',
    '2 MiB for a client, 16 MiB for all',
    'leaves out names; drops the oldest client',
  ],
  ['URIs of a view that lists or reads have shown', '20,000', '2 KiB', '4 MiB', 'drops the oldest'],
  ['URI templates of a view', '1,000', '1 KiB', '512 KiB', 'leaves out templates'],
  ['tasks of a view', '10,000', '1 KiB', '2 MiB', 'drops the oldest'],
  ['tasks of a shared modern server', '50,000; 1,000 of a user', '1 KiB', '', 'drops the oldest'],
  [
    'unanswered requests of all sessions; messages that wait for servers, in all queues and tables',
    '',
    '',
    '128 MiB each (`limits.total.inFlight`); three quarters for requests over 16 KiB',
    'refuses: `gateway_busy`',
  ],
  ['messages of a session that its server does not read', '', '', '16 MiB', 'refuses: `server_busy`'],
  ['requests that wait at a server because it may ask another client', '256', '', '16 MiB', 'refuses: `server_busy`'],
  ['requests that wait for a turn in a session of a group', '256', '', '16 MiB', 'refuses: `group_busy`'],
  [
    'calls of a group that wait for the roots of a server that has started',
    '4,096',
    '',
    '16 MiB',
    'refuses: `server_busy`',
  ],
  ['messages of a session that wait while a process is found', '64', '', '16 MiB', 'refuses: `server_busy`'],
  ['messages of an HTTP+SSE client whose session the gateway opens', '', '', '16 MiB', 'refuses: `server_busy`'],
  ['messages that wait for a server that is restored', '', '', '8 MiB', 'refuses: `server_busy`'],
  [
    'requests in flight of a session, for logs and reports, and for a rerun',
    '256; 4,096 in a group',
    '16 KiB',
    '',
    'keeps the method, the name and the trace',
  ],
  [
    'requests in flight at a server of a view, for a rerun',
    '256',
    '',
    '4 MiB',
    'keeps no text; such a request does not run again',
  ],
  ['requests that wait for the lists of a view', '1,024', '', '16 MiB', 'refuses: `server_busy`'],
  ['calls that wait for the list of a filtered server', '1,024', '', '16 MiB', 'refuses: `server_busy`'],
  ['requests that wait for the start of a server of a view', '', '', '16 MiB', 'refuses: `server_busy`'],
  [
    'requests of a server that a session of a shared process has not answered',
    '1,000',
    '256 bytes',
    '',
    'refuses the next one',
  ],
  ['requests of the servers of a view, and their progress tokens', '2,000', '256 bytes', '', 'drops the oldest'],
  ['URL elicitations of a shared process, or of a view', '256', '1 KiB', '64 KiB', 'drops the oldest'],
  [
    'cancelled requests at a server that clients share',
    '1,000',
    '256 bytes',
    '',
    'drops the oldest; what names no request is then for nobody, for `timeouts.grace`',
  ],
  ['progress tokens of answered requests', '64', '256 bytes', '', 'drops the oldest'],
  ['kept lists of a server', '1,000', '1 MiB', '16 MiB', 'drops the oldest'],
  ['requests of other instances that wait for takeovers of their sessions', '', '', '64 MiB', 'refuses: `server_busy`'],
  ['records of sessions of other instances', '10,000', '64 KiB', '16 MiB', 'drops the oldest'],
  ['replies that lost the connection to the instance of their client', '1,024', '16 KiB', '', 'drops the oldest'],
  ['changes that wait for the files of the store', '', '', '64 MiB', 'refuses: `store_unavailable`'],
  ['outcomes of rounds, owners of tasks, and used proofs', '', '', '64, 16 and 16 MiB', 'drops the oldest'],
  ['tools of a server on the status page', '50', '256 bytes', '16 KiB', 'drops the oldest'],
  ['questions about tokens', '256 (`auth: upstream`: 64)', '8 KiB', '2 MiB', 'refuses: `token_not_checked`'],
];

/** What peers name in shared places, and who may name it. */
const owners: readonly (readonly string[])[] = [
  ['the scanner', 'a remembered key', 'nobody: it saves work, and decides nothing'],
  ['a process of several sessions', 'a request (cancellation)', 'the session that sent it'],
  ['a process of several sessions', 'a request of the server (answer, progress)', 'the session that got it'],
  [
    'a process of several users',
    'a request of the server',
    'the only session with a call in flight that may ask, else nobody',
  ],
  ['a process of several users', 'a notification without a request', 'nobody; changed lists: all'],
  [
    'a process of several sessions, a view',
    'a URL elicitation (its end)',
    'the session, or server, that had its id first',
  ],
  ['a view', 'a request (answer), a progress token', 'the server that got the request'],
  ['a view', 'a task', 'the server whose answer created it'],
  ['a view', 'a request of a server (answer, cancellation)', 'the client that got it; the server that sent it'],
  ['a view', 'a URI, a template', 'the first server of the file that lists it'],
  ['a view', 'a `ui://` page', 'the server that its URI names'],
  ['a shared modern server', 'a request, a token, a task', 'the user who sent the request or began the task'],
];

const gateTable = (rows: readonly GateRow[]): string =>
  [['What a peer sends or names', 'Limit', 'Beyond it'], ['---', '---', '---'], ...rows]
    .map((cells) => row(...cells))
    .join('\n');

function renderHardening(): string {
  return `${generated}

# Faults, bad inputs and attacks

This page describes how the gateway behaves under faults, bad input and attacks. Each row has one or two testable sentences.
The outcomes follow from the [promises](design.md#promises). Tests cite a row by its id, for example \`it('[F16] …')\`. The
build fails if a row is not cited by any test. [SECURITY.md](../SECURITY.md) contains the threat model.

A normal test run uses small sizes. \`FAULT_SIZE=full\` uses the full sizes: 50 sessions when an owner is killed, 2,000 resumed
streams within a second, 200 starts and ends of a process, 10,000 disconnects between replayed and live events, and one-minute outages.

## Three gates

Most attacks are of three kinds: a text that costs much work, a table that grows, and a name that belongs to somebody else.
Each kind has one gate. All readers, tables and look-ups pass through these gates.

### Gate 1: work

A peer cannot make the gateway work for long in one turn of its event loop. All readers ask one work meter
(\`src/core/util/timing/work-meter.ts\`, [decision 0146](decisions/0146-bounds.md)).

${gateTable(workLimits)}

### Gate 2: bytes

Each table of what a peer names has a limit for its entries, for one entry, and for the bytes of all
([decision 0146](decisions/0146-bounds.md)). A full table drops its oldest entries, or refuses the next one.

${row('Table', 'Entries', 'One entry', 'All entries', 'When it is full')}
${row('---', '---', '---', '---', '---')}
${tables.map((table) => row(...table)).join('\n')}

### Gate 3: ownership

In a place that several peers share, each look-up takes the asker ([decision
0149](decisions/0149-look-ups-name-the-asker.md)).

${row('Shared place', 'Looked up', 'Who may name it')}
${row('---', '---', '---')}
${owners.map((owner) => row(...owner)).join('\n')}

### Floods

\`node test/run.mjs floods\` starts hostile servers and clients. They flood a gateway that has 512 MiB of memory and the image's
flags of Node.js, alone, in a view and behind a filter. The table shows the processor time of the gateway's main thread during
one \`/healthz\`, in milliseconds: the highest one of the three places. The last column is the highest resident memory of the
gateway, in MiB. An honest client of another server gets every answer.

The limit is 50 ms. A flood that exceeds it runs again, twice at most, and its lowest figure counts. ${floodsAtLimit()}

${row('Flood', 'STDIO', 'HTTP+SSE', 'Streamable HTTP', 'WebSocket', 'memory')}
${row('---', '---', '---', '---', '---', '---')}
${floodRows()
  .map((cells) => row(...cells))
  .join('\n')}

The clients above use Streamable HTTP. The next table shows the same floods over each transport of a client, at a STDIO server.

${row('Flood', 'Streamable HTTP', 'HTTP+SSE', 'WebSocket', 'Streamable HTTP 2026-07-28')}
${row('---', '---', '---', '---', '---')}
${clientFloodRows()
  .map((cells) => row(...cells))
  .join('\n')}

## Faults to survive

${tableOf(faults)}

## Bad inputs and their answers

${tableOf(inputs)}

## Security properties

${tableOf(properties)}

## Advisories about other programs

Each row covers a vulnerability of another gateway, SDK or proxy. For each vulnerability, a test shows that mcp-gangway does not have it.

${tableOf(advisories)}

## Findings of audits and reviews

The letter of an id names the source of the finding: S is the security audit of November 2026, C the review of the core, and E the
review of the other parts. J stands for the test suites of other projects, U for false refusals under faults, M for modern clients on
legacy servers, and P for troubleshooting by operators. G is the audit that led to the three gates.

${tableOf([...floor, ...gateFindings])}
`;
}

it('docs/protocol.md is what the requirements say', async () => {
  await expect(renderProtocol()).toMatchFileSnapshot('../../docs/protocol.md');
});

it('docs/hardening.md is what the requirements say', async () => {
  await expect(renderHardening()).toMatchFileSnapshot('../../docs/hardening.md');
});

it('each source of a requirement of the protocol is explained', () => {
  const known = sources.map(([name]) => name);
  const named = requirements.flatMap(({ source }) => source.match(/\b(?!RFC)[A-Z]+\d*\b/g) ?? []);
  expect([...new Set(named), 'V2'].filter((name) => !known.includes(name))).toEqual([]);
  expect(known.filter((name) => !named.includes(name))).toEqual([]);
});
