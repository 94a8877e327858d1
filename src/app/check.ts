import type { OpenBackend } from '../backend/backend.ts';
import { probeEra } from '../modern/era-probe.ts';
import type { Era } from '../protocol/revisions.ts';
import type { GatewayConfig, ServerConfig } from './configuration/config.ts';
import type { Environment } from './configuration/environment.ts';
import { explainForcedEra } from './other-era.ts';
import type { Openers } from './remote.ts';
import { openersOf } from './servers.ts';
import {
  discover,
  explainEnd,
  explainSilence,
  type InitializeResult,
  initialize,
  NoAnswer,
  openTrial,
  type ServerInfo,
  servedRevisions,
  type Trial,
} from './trial.ts';
import { version } from './version.ts';

/** What a server said of itself. */
interface Findings {
  /** How it is reached, found out where that was left to the gateway. */
  readonly transport: string;
  readonly eras: readonly Era[];
  /** The newest revision of each of its eras. */
  readonly revisions: readonly string[];
  readonly name: string;
  readonly startMs: number;
  /** How many tools, prompts and resources it lists; absent where it declares none. */
  readonly counts: Readonly<Record<string, number>>;
  /** What the operator should know though the server works. */
  readonly warning?: string;
}

/** Lists that a server may declare, with the capability that declares them. */
const lists = [
  ['tools', 'tools/list'],
  ['prompts', 'prompts/list'],
  ['resources', 'resources/list'],
] as const;

/** Pages read of one list at most: a server whose cursor never ends must not keep the check. */
const maxPages = 100;

/**
 * Tries each server: starts it, finds out its era, counts what it offers, ends it. Prints a line for each.
 * @returns true if every server works
 */
export async function checkServers(
  config: GatewayConfig,
  environment: Environment,
  print: (text: string) => void,
): Promise<boolean> {
  let isFine = true;
  for (const server of config.servers) {
    try {
      print(renderFindings(server, await examine(server, config, environment)));
    } catch (error) {
      isFine = false;
      print(`FAIL  ${server.name}: ${(error as Error).message}\n`);
    }
  }
  return isFine;
}

function renderFindings(server: ServerConfig, { transport, eras, revisions, ...found }: Findings): string {
  const { name, startMs, counts, warning } = found;
  const offers = Object.entries(counts).map(([what, count]) => `, ${count} ${count === 1 ? what.slice(0, -1) : what}`);
  const era = eras.length > 1 ? 'both eras, revisions' : `${eras.join()} era, revision`;
  const line = `OK    ${server.name}: ${name}, ${transport}, ${era} ${revisions.join(' and ')}${offers.join('')}, started in ${startMs} ms\n`;
  return warning === undefined ? line : `${line}      ${server.name}: ${warning}\n`;
}

async function examine(server: ServerConfig, config: GatewayConfig, environment: Environment): Promise<Findings> {
  let transport: string = server.address?.transport ?? 'stdio';
  const onTransport = (found: string): void => {
    transport = found;
  };
  const openers = openersOf(server, config, environment, { onTransport });
  const found = await examineEras(server, openers);
  return { ...found, transport: transport === 'auto' ? 'http' : transport };
}

type EraFindings = Omit<Findings, 'transport'>;

/** Finds out the era, or both, of a server, and what it offers. Rejects with a sentence for the operator if it does not work. */
export async function examineEras(
  { era, startTimeoutMs }: Pick<ServerConfig, 'era' | 'startTimeoutMs'>,
  openers: Openers,
): Promise<EraFindings> {
  const { open, openModern, isOverHttp } = openers;
  const inLegacy = (): Promise<EraFindings> => examineLegacy(openTrial(open, startTimeoutMs));
  if (openModern === undefined) return inLegacy();
  const inModern = (): Promise<EraFindings> => examineModern(openTrial(openModern, startTimeoutMs, 'modern'));
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
  if (legacy instanceof NoAnswer) {
    const help = 'Say --era modern (in the file: "era": "modern"), and they are served by translation.';
    return {
      ...modern,
      warning: `Clients of the legacy era cannot connect, or not at once. ${legacy.message} ${help}`,
    };
  }
  if (legacy instanceof Error) return modern;
  return { ...modern, eras: ['modern', 'legacy'], revisions: [...modern.revisions, ...legacy.revisions] };
}

async function findEra(open: OpenBackend, timeoutMs: number, isOverHttp: boolean): Promise<Era> {
  const probe = probeEra({ open, version, timeoutMs, isOverHttp });
  const outcome = await probe.outcome;
  await probe.close();
  if (outcome.era !== undefined) return outcome.era;
  // What is wrong with a server at a URL is told by what opens a session; some cannot answer any other question.
  if (isOverHttp) return 'legacy';
  throw outcome.end === undefined ? explainSilence('initialize', timeoutMs) : explainEnd(outcome.end);
}

async function examineLegacy(trial: Trial): Promise<EraFindings> {
  const startedAt = performance.now();
  try {
    const { protocolVersion, capabilities, serverInfo } = await initialize(trial);
    if (typeof protocolVersion !== 'string') throw new NoAnswer('It answered initialize without a protocolVersion.');
    const startMs = Math.round(performance.now() - startedAt);
    const counts = await countAll(trial, capabilities);
    return { eras: ['legacy'], revisions: [protocolVersion], name: nameOf(serverInfo), startMs, counts };
  } finally {
    await trial.close();
  }
}

async function examineModern(trial: Trial): Promise<EraFindings> {
  const startedAt = performance.now();
  try {
    const result = await discover(trial);
    const startMs = Math.round(performance.now() - startedAt);
    const revisions = servedRevisions(result);
    const counts = await countAll(trial, result.capabilities);
    const name = nameOf(result._meta?.['io.modelcontextprotocol/serverInfo']);
    return { eras: ['modern'], revisions, name, startMs, counts };
  } finally {
    await trial.close();
  }
}

const nameOf = ({ name = 'unnamed', version: itsVersion = '' }: ServerInfo = {}): string =>
  `${name} ${itsVersion}`.trim();

async function countAll(trial: Trial, capabilities: InitializeResult['capabilities']): Promise<Findings['counts']> {
  const counts: Record<string, number> = {};
  for (const [what, method] of lists) {
    if (capabilities?.[what] !== undefined) counts[what] = await countItems(trial, what, method);
  }
  return counts;
}

async function countItems(trial: Trial, what: string, method: string): Promise<number> {
  let count = 0;
  let cursor: unknown;
  for (let page = 0; page < maxPages; page++) {
    const result = (await trial.request(method, cursor === undefined ? {} : { cursor })) as Record<string, unknown>;
    const items = result[what];
    if (!Array.isArray(items)) throw new Error(`It answered ${method} without a list of ${what}.`);
    count += items.length;
    cursor = result['nextCursor'];
    if (typeof cursor !== 'string') break;
  }
  return count;
}
