import type { Backend, BackendEnd, OpenBackend } from '../backend/backend.ts';
import { entryOf } from '../protocol/faults.ts';
import { readBody } from '../protocol/message.ts';
import { legacyRevisions } from '../protocol/revisions.ts';
import type { GatewayConfig, ServerConfig } from './configuration/config.ts';
import type { Environment } from './configuration/environment.ts';
import { openerOf } from './servers.ts';
import { version } from './version.ts';

/** What a server said of itself. */
interface Findings {
  readonly revision: string;
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
 * Tries each server: starts it, opens a session, counts what it offers, ends it. Prints a line for each.
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

function renderFindings(server: ServerConfig, { revision, name, startMs, counts }: Findings): string {
  const offers = Object.entries(counts).map(([what, count]) => `, ${count} ${count === 1 ? what.slice(0, -1) : what}`);
  const transport = server.address?.transport ?? 'stdio';
  return `OK    ${server.name}: ${name}, ${transport}, legacy era, revision ${revision}${offers.join('')}, started in ${startMs} ms\n`;
}

async function examine(server: ServerConfig, config: GatewayConfig, environment: Environment): Promise<Findings> {
  const client = connect(openerOf(server, config, environment, {}), server.startTimeoutMs);
  const startedAt = performance.now();
  try {
    const result = (await client.request('initialize', {
      protocolVersion: legacyRevisions.at(-1),
      capabilities: {},
      clientInfo: { name: 'mcp-gangway check', version },
    })) as InitializeResult;
    const startMs = Math.round(performance.now() - startedAt);
    client.notify('notifications/initialized');
    const counts: Record<string, number> = {};
    for (const [what, method] of lists) {
      if (result.capabilities?.[what] !== undefined) counts[what] = await countItems(client, what, method);
    }
    const { name = 'unnamed', version: itsVersion = '' } = result.serverInfo ?? {};
    return { revision: result.protocolVersion, name: `${name} ${itsVersion}`.trim(), startMs, counts };
  } finally {
    await client.close();
  }
}

interface InitializeResult {
  readonly protocolVersion: string;
  readonly capabilities?: Readonly<Record<string, unknown>>;
  readonly serverInfo?: { readonly name?: string; readonly version?: string };
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
function connect(open: OpenBackend, timeoutMs: number): Client {
  let waiting: Waiting | undefined;
  let lastId = 0;
  let end: BackendEnd | undefined;

  const settle = (line: Buffer): void => {
    const body = readBody(line, Number.POSITIVE_INFINITY);
    const isAnswer =
      body.ok &&
      body.messages.some((read) => read.ok && read.message.kind === 'response' && read.message.id === lastId);
    if (!isAnswer || waiting === undefined) return;
    const { result, error } = JSON.parse(line.toString()) as { result?: unknown; error?: { message?: unknown } };
    if (error === undefined) waiting.resolve(result);
    else waiting.reject(new Error(`It answered ${waiting.method} with the error: ${String(error.message)}`));
  };

  const backend: Backend = open({
    onMessages: (lines) => lines.forEach(settle),
    onUnanswered(_, reason) {
      waiting?.reject(new Error(`It did not answer ${waiting.method}. ${entryOf(reason).message}`));
    },
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
          const late = `It did not answer ${method} within ${timeoutMs} ms. Is it an MCP server?`;
          timer = setTimeout(() => reject(new Error(late)), timeoutMs);
          if (end !== undefined) reject(explainEnd(end));
          backend.send(Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: lastId, method, params })));
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

function explainEnd({ reason, detail, lastOutput = [] }: BackendEnd): Error {
  if (reason === 'failed') return new Error(detail);
  const output = lastOutput.map((line) => `\n        | ${line}`).join('');
  return new Error(`It ended before it answered. ${detail}${output}`);
}
