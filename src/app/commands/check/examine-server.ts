import type { BackendEnd, BackendEvents, OpenBackend } from '../../../backend/backend.ts';
import type { GatewayConfig, ServerConfig } from '../../../config/config.ts';
import type { Environment } from '../../../config/sources/environment-variables.ts';
import { probeEra } from '../../../modern/era-probe.ts';
import type { Era } from '../../../protocol/revisions.ts';
import {
  discover,
  explainEnd,
  explainSilence,
  initialize,
  NoAnswerError,
  openProbeSession,
  type ProbeSession,
  StdoutNoise,
  servedRevisions,
} from '../../probes/probe-session.ts';
import { explainForcedEra } from '../../servers/explain-forced-era.ts';
import type { Openers } from '../../servers/remote-openers.ts';
import { openersOf } from '../../servers/run-server.ts';
import { version } from '../../version.ts';

/** What a server said of itself. */
export interface Findings {
  readonly eras: readonly Era[];
  /** The newest revision of each of its eras. */
  readonly revisions: readonly string[];
  /** Its name and version. */
  readonly name: string;
  readonly startMs: number;
  /** The names of what it lists, and the URIs of its resources; absent where it declares none. */
  readonly lists: Readonly<Partial<Record<Listed, readonly string[]>>>;
  /** What it declares, by name: `tools`, `tasks`, … */
  readonly declares: readonly string[];
  /** The first line that it wrote to stdout and that is no MCP message. */
  readonly noise?: string;
  /** What the operator should know though the server works. */
  readonly warning?: string;
}

/** What a server can list. */
export type Listed = (typeof lists)[number][0];

/** Lists that a server may declare, with the capability that declares them. */
export const lists = [
  ['tools', 'tools/list', 'name'],
  ['prompts', 'prompts/list', 'name'],
  ['resources', 'resources/list', 'uri'],
] as const;

/** Pages read of one list at most: a server whose cursor never ends must not keep the check. */
const maxPages = 100;

/** Tries a server as it is configured. Rejects as `examineEras`. */
export async function examine(
  server: ServerConfig,
  config: GatewayConfig,
  environment: Environment,
): Promise<Findings & { readonly transport: string }> {
  let transport: string = server.address?.transport ?? 'stdio';
  const onTransport = (found: string): void => {
    transport = found;
  };
  const openers = openersOf(server, config, environment, { onTransport });
  const found = await examineEras(server, openers);
  return { ...found, transport: transport === 'auto' ? 'http' : transport };
}

/** Finds out the era, or both, of a server, and what it offers. Rejects with a sentence for the operator if it does not work. */
export async function examineEras(
  { era, startTimeoutMs }: Pick<ServerConfig, 'era' | 'startTimeoutMs'>,
  openers: Openers,
): Promise<Findings> {
  const { open, openModern, isOverHttp } = openers;
  const inLegacy = (): Promise<Findings> => examineLegacy(openProbeSession(open, startTimeoutMs));
  if (openModern === undefined) return inLegacy();
  const inModern = (): Promise<Findings> => examineModern(openProbeSession(openModern, startTimeoutMs, 'modern'));
  if (era !== 'auto') {
    return (era === 'modern' ? inModern() : inLegacy()).catch(async (error: Error) => {
      throw await explainForcedEra(error, era, openers, startTimeoutMs);
    });
  }
  if ((await findEra(openModern, startTimeoutMs, isOverHttp)) === 'legacy') return inLegacy();
  const modern = await inModern();
  // The official SDK serves both eras with one program, and says nothing of the one in the answers of the other.
  const legacy = await inLegacy().catch((error: Error) => error);
  // A refusal has sessions translated. Without one their clients wait, in vain if what came is of no use.
  if (legacy instanceof NoAnswerError) {
    const help = 'Set --era modern (in the file: "era": "modern") to serve them by translation.';
    return {
      ...modern,
      warning: `Legacy clients cannot connect, or only after a delay. ${legacy.message} ${help}`,
    };
  }
  if (legacy instanceof Error) return modern;
  return { ...modern, eras: ['modern', 'legacy'], revisions: [...modern.revisions, ...legacy.revisions] };
}

async function findEra(open: OpenBackend, timeoutMs: number, isOverHttp: boolean): Promise<Era> {
  let output: readonly string[] | undefined;
  const noise = new StdoutNoise();
  const heard: OpenBackend = (events, opening) => {
    const onEnd = (end: BackendEnd): void => {
      output = end.lastOutput;
      events.onEnd(end);
    };
    const onMessages: BackendEvents['onMessages'] = (lines, of) => {
      for (const line of lines) noise.note(line);
      events.onMessages(lines, of);
    };
    return open({ ...events, onMessages, onEnd }, opening);
  };
  const probe = probeEra({ open: heard, version, timeoutMs, isOverHttp });
  const outcome = await probe.outcome;
  await probe.close();
  if (outcome.era !== undefined) return outcome.era;
  // What is wrong with a server at a URL is told by what opens a session; some cannot answer any other question.
  if (isOverHttp) return 'legacy';
  throw outcome.end === undefined
    ? explainSilence('initialize', timeoutMs, noise.with(output))
    : explainEnd(outcome.end);
}

async function examineLegacy(trial: ProbeSession): Promise<Findings> {
  const startedAt = performance.now();
  try {
    const { protocolVersion, capabilities, serverInfo } = await initialize(trial);
    if (typeof protocolVersion !== 'string')
      throw new NoAnswerError('The server answered initialize without a protocolVersion.');
    const startMs = Math.round(performance.now() - startedAt);
    const offered = await listAll(trial, capabilities);
    const revisions = [protocolVersion];
    return { eras: ['legacy'], revisions, name: nameOf(serverInfo), startMs, ...offered, ...noiseOf(trial) };
  } finally {
    await trial.close();
  }
}

async function examineModern(trial: ProbeSession): Promise<Findings> {
  const startedAt = performance.now();
  try {
    const result = await discover(trial);
    const startMs = Math.round(performance.now() - startedAt);
    const revisions = servedRevisions(result);
    const offered = await listAll(trial, result.capabilities);
    const name = nameOf(result._meta?.['io.modelcontextprotocol/serverInfo']);
    return { eras: ['modern'], revisions, name, startMs, ...offered, ...noiseOf(trial) };
  } finally {
    await trial.close();
  }
}

const noiseOf = ({ noise: [first] }: ProbeSession): Pick<Findings, 'noise'> =>
  first === undefined ? {} : { noise: first };

/** So much is told of what a server calls itself, or what it lists. */
const maxName = 1_000;

const textOr = (value: unknown, other: string): string => (typeof value === 'string' ? value.slice(0, maxName) : other);

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

function nameOf(serverInfo: unknown): string {
  const { name, version: itsVersion } = isObject(serverInfo) ? serverInfo : {};
  return `${textOr(name, 'unnamed')} ${textOr(itsVersion, '')}`.trim();
}

async function listAll(trial: ProbeSession, declared: unknown): Promise<Pick<Findings, 'lists' | 'declares'>> {
  const capabilities = isObject(declared) ? declared : {};
  const found: Partial<Record<Listed, readonly string[]>> = {};
  for (const [what, method, key] of lists) {
    if (capabilities[what] !== undefined) found[what] = await listOne(trial, what, method, key);
  }
  return { lists: found, declares: Object.keys(capabilities) };
}

async function listOne(trial: ProbeSession, what: Listed, method: string, key: string): Promise<string[]> {
  const names: string[] = [];
  let cursor: unknown;
  for (let page = 0; page < maxPages; page++) {
    const result = (await trial.request(method, cursor === undefined ? {} : { cursor })) as Record<string, unknown>;
    const items = result[what];
    if (!Array.isArray(items)) throw new Error(`The server answered ${method} without a list of ${what}.`);
    for (const item of items as readonly unknown[])
      names.push(textOr(isObject(item) ? item[key] : undefined, 'unnamed'));
    cursor = result['nextCursor'];
    if (typeof cursor !== 'string') break;
  }
  return names;
}
