import type { Backend, BackendEnd, OpenBackend } from '../backend/backend.ts';
import { probeEra } from '../modern/era-probe.ts';
import { readResponse } from '../protocol/message.ts';
import { ownRequest } from '../protocol/modern/envelope.ts';
import { type Era, legacyRevisions, modernRevisions } from '../protocol/revisions.ts';
import type { GatewayConfig, ServerConfig } from './configuration/config.ts';
import type { Environment } from './configuration/environment.ts';
import { openerOf } from './servers.ts';
import { version } from './version.ts';

/** What a server said of itself. */
interface Findings {
  readonly eras: readonly Era[];
  /** The newest revision of each of its eras. */
  readonly revisions: readonly string[];
  readonly name: string;
  readonly startMs: number;
  /** How many tools, prompts and resources it lists; absent where it declares none. */
  readonly counts: Readonly<Record<string, number>>;
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

function renderFindings(server: ServerConfig, { eras, revisions, name, startMs, counts }: Findings): string {
  const offers = Object.entries(counts).map(([what, count]) => `, ${count} ${count === 1 ? what.slice(0, -1) : what}`);
  const transport = server.address?.transport ?? 'stdio';
  const era = eras.length > 1 ? 'both eras, revisions' : `${eras.join()} era, revision`;
  return `OK    ${server.name}: ${name}, ${transport}, ${era} ${revisions.join(' and ')}${offers.join('')}, started in ${startMs} ms\n`;
}

async function examine(server: ServerConfig, config: GatewayConfig, environment: Environment): Promise<Findings> {
  const open = openerOf(server, config, environment, {});
  const { startTimeoutMs: timeoutMs } = server;
  const isAsked = server.address === undefined && server.era === 'auto';
  const era = isAsked ? await findEra(open, timeoutMs) : server.era;
  if (era !== 'modern') return examineLegacy(connect(open, timeoutMs, 'legacy'));
  const modern = await examineModern(connect(open, timeoutMs, 'modern'));
  // The official SDK serves both eras with one program, and says nothing of the one in the answers of the other.
  const legacy = isAsked && (await examineLegacy(connect(open, timeoutMs, 'legacy')).catch(() => undefined));
  if (!legacy) return modern;
  return { ...modern, eras: ['modern', 'legacy'], revisions: [...modern.revisions, ...legacy.revisions] };
}

async function findEra(open: OpenBackend, timeoutMs: number): Promise<Era> {
  const probe = probeEra({ open, version, timeoutMs });
  const outcome = await probe.outcome;
  await probe.close();
  if (outcome.era !== undefined) return outcome.era;
  throw outcome.end === undefined ? new Error(explainSilence('initialize', timeoutMs)) : explainEnd(outcome.end);
}

async function examineLegacy(client: Client): Promise<Findings> {
  const startedAt = performance.now();
  try {
    const result = (await client.request('initialize', {
      protocolVersion: legacyRevisions.at(-1),
      capabilities: {},
      clientInfo: { name: 'mcp-gangway check', version },
    })) as InitializeResult;
    const startMs = Math.round(performance.now() - startedAt);
    client.notify('notifications/initialized');
    const counts = await countAll(client, result.capabilities);
    return { eras: ['legacy'], revisions: [result.protocolVersion], name: nameOf(result.serverInfo), startMs, counts };
  } finally {
    await client.close();
  }
}

async function examineModern(client: Client): Promise<Findings> {
  const startedAt = performance.now();
  try {
    const result = (await client.request('server/discover', {})) as DiscoverResult;
    const startMs = Math.round(performance.now() - startedAt);
    const revisions = modernRevisions.filter((revision) => result.supportedVersions?.includes(revision));
    if (revisions.length === 0) throw new Error('It serves no revision of the modern era that this gateway knows.');
    const counts = await countAll(client, result.capabilities);
    const name = nameOf(result._meta?.['io.modelcontextprotocol/serverInfo']);
    return { eras: ['modern'], revisions, name, startMs, counts };
  } finally {
    await client.close();
  }
}

const nameOf = ({ name = 'unnamed', version: itsVersion = '' }: ServerInfo = {}): string =>
  `${name} ${itsVersion}`.trim();

interface ServerInfo {
  readonly name?: string;
  readonly version?: string;
}

interface DiscoverResult {
  readonly supportedVersions?: readonly string[];
  readonly capabilities?: Readonly<Record<string, unknown>>;
  readonly _meta?: { readonly 'io.modelcontextprotocol/serverInfo'?: ServerInfo };
}

interface InitializeResult {
  readonly protocolVersion: string;
  readonly capabilities?: Readonly<Record<string, unknown>>;
  readonly serverInfo?: ServerInfo;
}

async function countAll(client: Client, capabilities: InitializeResult['capabilities']): Promise<Findings['counts']> {
  const counts: Record<string, number> = {};
  for (const [what, method] of lists) {
    if (capabilities?.[what] !== undefined) counts[what] = await countItems(client, what, method);
  }
  return counts;
}

async function countItems(client: Client, what: string, method: string): Promise<number> {
  let count = 0;
  let cursor: unknown;
  for (let page = 0; page < maxPages; page++) {
    const result = (await client.request(method, cursor === undefined ? {} : { cursor })) as Record<string, unknown>;
    const items = result[what];
    if (!Array.isArray(items)) throw new Error(`It answered ${method} without a list of ${what}.`);
    count += items.length;
    cursor = result['nextCursor'];
    if (typeof cursor !== 'string') break;
  }
  return count;
}

interface Client {
  /** The result; rejects with a sentence for the operator if there is an error, no answer in time, or the server ends. */
  request(method: string, params: object): Promise<unknown>;
  notify(method: string): void;
  close(): Promise<void>;
}

interface Waiting {
  readonly method: string;
  resolve(result: unknown): void;
  reject(error: Error): void;
}

/** The few lines of a client that a check needs: one request at a time, everything else the server says is ignored. */
function connect(open: OpenBackend, timeoutMs: number, era: Era): Client {
  let waiting: Waiting | undefined;
  let lastId = 0;
  let end: BackendEnd | undefined;

  const settle = (line: Buffer): void => {
    if (readResponse(line)?.id !== lastId || waiting === undefined) return;
    const { result, error } = JSON.parse(line.toString()) as { result?: unknown; error?: { message?: unknown } };
    if (error === undefined) waiting.resolve(result);
    else waiting.reject(new Error(`It answered ${waiting.method} with the error: ${String(error.message)}`));
  };

  const textOf = (id: number, method: string, params: object): Buffer => {
    if (era === 'legacy') return Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    const [protocolVersion] = modernRevisions.slice(-1) as [string];
    return ownRequest(id, method, { ...params }, { version, protocolVersion });
  };

  const backend: Backend = open({
    onMessages: (lines) => lines.forEach(settle),
    onEnd(told) {
      end = told;
      waiting?.reject(explainEnd(told));
    },
  });

  return {
    async request(method, params) {
      lastId += 1;
      let timer: NodeJS.Timeout | undefined;
      try {
        return await new Promise((resolve, reject) => {
          waiting = { method, resolve, reject };
          timer = setTimeout(() => reject(new Error(explainSilence(method, timeoutMs))), timeoutMs);
          if (end !== undefined) reject(explainEnd(end));
          backend.send(textOf(lastId, method, params));
        });
      } finally {
        clearTimeout(timer);
        waiting = undefined;
      }
    },
    notify: (method) => void backend.send(Buffer.from(JSON.stringify({ jsonrpc: '2.0', method }))),
    close: () => backend.close(),
  };
}

const explainSilence = (method: string, timeoutMs: number): string =>
  `It did not answer ${method} within ${timeoutMs} ms. Is it an MCP server?`;

function explainEnd({ reason, detail, lastOutput = [] }: BackendEnd): Error {
  if (reason === 'failed') return new Error(detail);
  const output = lastOutput.map((line) => `\n        | ${line}`).join('');
  return new Error(`It ended before it answered. ${detail}${output}`);
}
