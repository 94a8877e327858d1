import type { GatewayConfig, ServerConfig } from './configuration/config.ts';
import type { Environment } from './configuration/environment.ts';
import { openerOf } from './servers.ts';
import { initialize, openTrial, type Trial } from './trial.ts';

/** What a server said of itself. */
interface Findings {
  /** How it is reached, found out where that was left to the gateway. */
  readonly transport: string;
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

function renderFindings(server: ServerConfig, { transport, revision, name, startMs, counts }: Findings): string {
  const offers = Object.entries(counts).map(([what, count]) => `, ${count} ${count === 1 ? what.slice(0, -1) : what}`);
  return `OK    ${server.name}: ${name}, ${transport}, legacy era, revision ${revision}${offers.join('')}, started in ${startMs} ms\n`;
}

async function examine(server: ServerConfig, config: GatewayConfig, environment: Environment): Promise<Findings> {
  let transport: string = server.address?.transport ?? 'stdio';
  const onTransport = (found: string): void => {
    transport = found;
  };
  const trial = openTrial(openerOf(server, config, environment, { onTransport }), server.startTimeoutMs);
  const startedAt = performance.now();
  try {
    const result = await initialize(trial);
    const startMs = Math.round(performance.now() - startedAt);
    const counts: Record<string, number> = {};
    for (const [what, method] of lists) {
      if (result.capabilities?.[what] !== undefined) counts[what] = await countItems(trial, what, method);
    }
    const { name = 'unnamed', version: itsVersion = '' } = result.serverInfo ?? {};
    return { transport, revision: result.protocolVersion, name: `${name} ${itsVersion}`.trim(), startMs, counts };
  } finally {
    await trial.close();
  }
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
