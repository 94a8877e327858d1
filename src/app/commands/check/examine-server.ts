import type { ServerConfig } from '../../../config/config.ts';
import type { BackendEnd, OpenBackend } from '../../../core/backend/backend.ts';
import { linkBackends } from '../../../core/backend/link/link.ts';
import type { ServerEvent } from '../../../core/ops/server-events.ts';
import { errorCodeIn } from '../../../core/protocol/json.ts';
import { walkPages } from '../../../core/protocol/list-page.ts';
import type { Era } from '../../../core/protocol/revisions.ts';
import { methodNotFound } from '../../../core/protocol/revisions.ts';
import { isObject } from '../../../core/util/is-object.ts';
import type { ErasFeature } from '../../features/eras.ts';
import type { Features, GatewaySetup } from '../../features/gateway-features.ts';
import type { Openers } from '../../features/servers.ts';
import { askServer, explainForcedEra } from '../../probes/ask-server.ts';
import {
  explainEcho,
  explainEnd,
  explainSilence,
  NoAnswerError,
  type ProbeSession,
  RefusedError,
  StdoutNoise,
} from '../../probes/probe-session.ts';
import { filterInterceptors, openersOf } from '../../servers/run-server.ts';
import { version } from '../../version.ts';
import { type FilteredItems, ListedItems, noFilters } from './unused-filters.ts';

/** The findings about a server. */
export interface Findings {
  readonly eras: readonly Era[];
  /** The revisions of the server, in the order of its eras. */
  readonly revisions: readonly string[];
  /** The name and the version of the server. */
  readonly name: string;
  readonly startMs: number;
  /** The names of tools and prompts, and the URIs of resources; absent where the server declares none. */
  readonly lists: Readonly<Partial<Record<Listed, readonly string[]>>>;
  /** The names of the declared capabilities: `tools`, `tasks`, … */
  readonly declares: readonly string[];
  /** The first line on stdout that is not an MCP message. */
  readonly noise?: string;
  /** Warnings for the operator about a server that works. */
  readonly warnings?: readonly string[];
}

/** The kinds of features that a server can list. */
export type Listed = (typeof lists)[number][0];

/** The lists that a server may declare: the capability, the method, and the member that names an item. */
export const lists = [
  ['tools', 'tools/list', 'name'],
  ['prompts', 'prompts/list', 'name'],
  ['resources', 'resources/list', 'uri'],
] as const;

/** Examines a server with its configuration. Rejects like `examineEras`. */
export async function examine(
  server: ServerConfig,
  setup: GatewaySetup,
  look: 'listed' | 'shown' = 'listed',
): Promise<Findings & { readonly transport: string; readonly items: FilteredItems }> {
  let transport: string = server.address?.transport ?? 'stdio';
  const emit = (event: ServerEvent): void => {
    if (event.type === 'transport-found') transport = event.transport;
  };
  // The filter comes after the observer, which sees the names that the filter hides.
  const items = new ListedItems();
  const telemetry = { emit, processInterceptors: () => [items.observe] };
  const examined = look === 'shown' ? server : { ...server, ...noFilters };
  const { open, openModern, isOverHttp } = openersOf(examined, setup, telemetry);
  const filters = look === 'shown' ? [] : filterInterceptors(server, setup);
  const filtered = (each: OpenBackend): OpenBackend => linkBackends(each, filters);
  const openers = { open: filtered(open), openModern: openModern && filtered(openModern), isOverHttp };
  const found = await examineEras(server, openers, setup.features);
  return { ...found, transport: transport === 'auto' ? 'http' : transport, items };
}

/**
 * Detects the eras and the features of a server. Rejects with a sentence for the operator if the server does not work.
 */
export async function examineEras(
  { era, timeouts: { startMs: startTimeoutMs } }: Pick<ServerConfig, 'era' | 'timeouts'>,
  openers: Openers,
  { eras }: Features,
): Promise<Findings> {
  const { open, openModern, isOverHttp } = openers;
  const tryLegacy = (): Promise<Findings> => examineIn('legacy', open, startTimeoutMs);
  if (openModern === undefined || eras === undefined) return tryLegacy();
  const tryModern = (): Promise<Findings> => examineIn('modern', openModern, startTimeoutMs);
  if (era !== 'auto') {
    return (era === 'modern' ? tryModern() : tryLegacy()).catch(async (error: Error) => {
      throw await explainForcedEra(error, era, openers, startTimeoutMs);
    });
  }
  if ((await findEra(eras, openModern, isOverHttp ? open : undefined, startTimeoutMs)) === 'legacy') return tryLegacy();
  const modern = await tryModern();
  // The official SDK can serve both eras with one program. The answers of one era do not mention the other.
  const legacy = await tryLegacy().catch((error: Error) => error);
  // After a refusal the gateway translates for legacy sessions. Without a refusal, legacy clients wait.
  if (legacy instanceof NoAnswerError) {
    const help = 'Set --era modern (in the file: "era": "modern"), so that the gateway translates for legacy clients.';
    const delayed = `Legacy clients cannot connect, or only after a delay. ${legacy.message} ${help}`;
    return { ...modern, warnings: [...(modern.warnings ?? []), delayed] };
  }
  if (legacy instanceof Error) return modern;
  return { ...modern, eras: ['modern', 'legacy'], revisions: [...modern.revisions, ...legacy.revisions] };
}

/** No client waits for `check` to start a server only once. */
const witnessAfterMs = 1_000;

/** @param openLegacy for a server over HTTP */
async function findEra(
  eras: ErasFeature,
  open: OpenBackend,
  openLegacy: OpenBackend | undefined,
  timeoutMs: number,
): Promise<Era> {
  let output: readonly string[] | undefined;
  const noise = new StdoutNoise();
  const isOverHttp = openLegacy !== undefined;
  const onNoise = (line: Buffer): void => noise.note(line);
  const onLateEnd = ({ lastOutput }: BackendEnd): void => {
    output = lastOutput;
  };
  const probe = eras.detect({ open, openLegacy, version, timeoutMs, witnessAfterMs, onNoise, onLateEnd });
  const outcome = await probe.outcome;
  await probe.close();
  if (outcome.era !== undefined) return outcome.era;
  if (outcome.isEcho) throw explainEcho();
  // At a URL, the attempt to open a session shows the fault. Some such servers answer nothing before `initialize`.
  if (isOverHttp) return 'legacy';
  throw outcome.end === undefined
    ? explainSilence('initialize', timeoutMs, noise.with(output))
    : explainEnd(outcome.end);
}

function examineIn(era: Era, open: OpenBackend, timeoutMs: number): Promise<Findings> {
  const startedAt = performance.now();
  return askServer(open, era, timeoutMs, async (session, { revisions, capabilities, serverInfo }) => {
    if (revisions.length === 0) throw new NoAnswerError('The server answered initialize without a protocolVersion.');
    const startMs = Math.round(performance.now() - startedAt);
    const offered = await listAll(session, capabilities);
    const { noise } = session;
    return {
      eras: [era],
      revisions,
      name: nameOf(serverInfo),
      startMs,
      ...offered,
      ...(noise !== undefined && { noise }),
    };
  });
}

/** A longer name of the server or of a listed item is truncated. */
const maxName = 1_000;

const textOr = (value: unknown, other: string): string => (typeof value === 'string' ? value.slice(0, maxName) : other);

function nameOf(serverInfo: unknown): string {
  const { name, version: itsVersion } = isObject(serverInfo) ? serverInfo : {};
  return `${textOr(name, 'unnamed')} ${textOr(itsVersion, '')}`.trim();
}

/** A list that a server does not declare is waited for only so long: the server need not know the request. */
const undeclaredMs = 3_000;

/** Reads the declared lists. A server that declares none may have them all the same, and clients list them. */
async function listAll(
  session: ProbeSession,
  declared: unknown,
): Promise<Pick<Findings, 'lists' | 'declares' | 'warnings'>> {
  const capabilities = isObject(declared) ? declared : {};
  const found: Partial<Record<Listed, readonly string[]>> = {};
  const warnings: string[] = [];
  for (const [what, method, key] of lists)
    if (capabilities[what] !== undefined) found[what] = await listOne(session, what, method, key, warnings);
  if (Object.keys(found).length === 0) {
    const [what, method, key] = lists[0];
    const tools = await listOne(session, what, method, key, warnings, undeclaredMs).catch(() => []);
    if (tools.length > 0) {
      found[what] = tools;
      warnings.push(
        'The server has tools, but does not declare them in its capabilities. Some clients do not list them.',
      );
    }
  }
  return { lists: found, declares: Object.keys(capabilities), warnings };
}

async function listOne(
  session: ProbeSession,
  what: Listed,
  method: string,
  key: string,
  warnings: string[],
  limitMs?: number,
): Promise<string[]> {
  const names: string[] = [];
  const end = await walkPages(async (cursor) => {
    const result = await readPage(session, method, cursor, limitMs);
    const items = result[what] ?? [];
    if (!Array.isArray(items)) throw new Error(`The server answered ${method} without a list of ${what}.`);
    for (const item of items as readonly unknown[])
      names.push(textOr(isObject(item) ? item[key] : undefined, 'unnamed'));
    const next = result['nextCursor'];
    if (next === '') warnings.push(stuckWarning(method, true));
    return { nextCursor: typeof next === 'string' ? next : undefined };
  });
  if (end === 'circle') warnings.push(stuckWarning(method, false));
  return names;
}

const stuckWarning = (method: string, isEmpty: boolean): string =>
  `The server answers ${method} with ${isEmpty ? 'an empty nextCursor' : 'a nextCursor that it gave before, so the pages never end'}. Many clients then read the list without end. Correct the server: the last page has no nextCursor.`;

/** A larger page of a list is not read. The command serves nobody, so it may be delayed. */
const maxPageBytes = 64 * 1024 * 1024;

/** A page of a list. "Method not found" says that there is none. */
async function readPage(
  session: ProbeSession,
  method: string,
  cursor: string | undefined,
  limitMs: number | undefined,
): Promise<Readonly<Record<string, unknown>>> {
  try {
    const result = await session.request(method, cursor === undefined ? {} : { cursor }, limitMs, maxPageBytes);
    return result as Readonly<Record<string, unknown>>;
  } catch (error) {
    if (error instanceof RefusedError && errorCodeIn(error.response.text) === methodNotFound) return {};
    throw error;
  }
}
