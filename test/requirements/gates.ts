import { readFileSync } from 'node:fs';

/** A limit of docs/hardening.md: what a peer can make long or many, the limit, and what happens beyond it. */
export type GateRow = readonly [what: string, limit: string, beyond: string];

/** Gate 1: whoever walks a peer's text, list, object, template, key or value. */
export const workLimits: readonly GateRow[] = [
  [
    'Lines of STDIO, TCP and Unix sockets; events of HTTP+SSE and Streamable HTTP; WebSocket frames; bodies of clients',
    'All readers together: 512 KiB in one turn of the event loop. A text counts as 1 KiB and its bytes',
    'The rest is read in later turns, in portions. Works of several peers take turns',
  ],
  [
    'A text of 511 KiB or more',
    '262,144 escapes or 131,072 values in one turn; long keys shorten the turn',
    'The scan goes on in a later turn',
  ],
  ['Values in a text of more than 8 MiB', '1,048,576', '`response_too_complex` for the call, 400 for a client'],
  ['Lines and events that are no messages', '16 for each portion that is read', 'The others are counted'],
  [
    'One event of a stream',
    '`limits.line`',
    'The stream ends. A large event is copied while it comes, at most 16 MiB in a turn',
  ],
  ['An error response of a server', '512 KiB', '`response_too_complex` for the call'],
  [
    'A list that is filtered, changed for a client of the other era, or merged in a view',
    '10,000 items, and 4,194,304 values and escapes in all walks over it',
    '`list_unreadable`; in a view, the server counts as one that did not answer',
  ],
  [
    'Tools that may mirror parameters as headers',
    '64 KiB for a schema; 64 KiB of schemas in one turn',
    'The tool is not offered; the rest is read in later turns',
  ],
  ['`inputSchema.required` of a tool with fixed arguments', '10,000 entries', 'The list stays as it is'],
  [
    'Lists from which the gateway only learns (tools that may be called again, tasks)',
    '10,000 items, 1 MiB and 256 KiB',
    'Nothing is learned',
  ],
  [
    'Keys at a level that routes a message',
    '4,096 bytes for a key; for a client, 16,384 characters for all keys of an object that are not ASCII, and 16 more for each',
    '`key_too_long`',
  ],
  [
    'A value that is built of a text (`parseBounded`)',
    'Its own limit in bytes at each place: 64 KiB at most for clients and for messages of servers, 1 MiB for answers to probes, 512 KiB for documents of issuers',
    'It counts as absent',
  ],
  [
    'A URI that is compared with the templates of servers',
    '1,024 bytes for a template, about 200,000 characters for one look-up',
    'The URI belongs to no server',
  ],
];

/** Figures by the flood, and then by the place and transport: `view stdio`, or `view stdio from ws`. */
type FiguresOfFloods = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** The figures of `node test/run.mjs floods`. */
export interface FloodFigures {
  /** The processor time of the gateway's main thread during one `/healthz`, in milliseconds. */
  readonly healthMs: FiguresOfFloods;
  /** The resident memory of the gateway. */
  readonly peakMiB: FiguresOfFloods;
}

const readFigures = (): FloodFigures =>
  JSON.parse(readFileSync(new URL('flood-figures.json', import.meta.url), 'utf8')) as FloodFigures;

/** The highest figure of the three places; nothing if there is none. */
function highestOf(byPlace: Readonly<Record<string, number>>, where: string): string {
  return highest(['alone', 'view', 'filter'].flatMap((place) => byPlace[`${place} ${where}`] ?? []));
}

const highest = (figures: readonly number[]): string => (figures.length === 0 ? '' : String(Math.max(...figures)));

const isOfClients = (kind: string): boolean => kind.startsWith('clients: ');

/** The rows of the table of floods, for each transport of the server, and with the memory. */
export function floodRows(): readonly (readonly string[])[] {
  const { healthMs, peakMiB } = readFigures();
  return Object.entries(healthMs).map(([kind, byPlace]) => [
    kind,
    ...['stdio', 'sse', 'http', 'ws'].map((transport) => highestOf(byPlace, transport)),
    highest(Object.values(peakMiB[kind] ?? {})),
  ]);
}

/** The rows of the table of floods of clients, for each transport of the client. */
export function clientFloodRows(): readonly (readonly string[])[] {
  const kinds = Object.entries(readFigures().healthMs).filter(([kind]) => isOfClients(kind));
  return kinds.map(([kind, byPlace]) => [
    kind,
    ...['', ' from sse', ' from ws', ' from modern'].map((client) => highestOf(byPlace, `stdio${client}`)),
  ]);
}

/** The processor time of one `/healthz` that no flood may reach, in milliseconds. */
const maxHealthMs = 50;

/** A sentence that names the floods which reached the limit when the figures were written. */
export function floodsAtLimit(): string {
  const atLimit = Object.entries(readFigures().healthMs).flatMap(([kind, byPlace]) =>
    Object.entries(byPlace).flatMap(([where, ms]) => (ms < maxHealthMs ? [] : [`${kind}, ${where} (${ms} ms)`])),
  );
  return atLimit.length === 0 ? 'No figure reaches it.' : `These floods reach it: ${atLimit.join('; ')}.`;
}
