import { quote } from 'shell-quote';
import type { GatewayConfig } from '../../config/config.ts';
import { storeDirectoryOf } from '../../config/store-directory-option.ts';
import { protocolVersionKey } from '../../protocol/message/message.ts';
import { clientCapabilitiesKey } from '../../protocol/modern/envelope.ts';
import { modernRevisions } from '../../protocol/revisions.ts';
import type { ServerUrls } from '../addresses/server-urls.ts';

/** Further details of the banner. */
export interface BannerDetails {
  /** Clients must authenticate. */
  readonly needsKey: boolean;
  /** Arguments that curl needs to reach the gateway from this machine. */
  readonly curlArguments?: readonly string[];
  /** The base URL for a proxy on this machine, if clients use another one. */
  readonly localUrl?: string | undefined;
  /** The URL of the status page, if there is one. */
  readonly statusPage?: string | undefined;
  /** The configuration file, if one was read. */
  readonly file?: string | undefined;
  /** One sentence: which clients share server processes. */
  readonly sharing?: string;
  /** One sentence: where sessions are kept. */
  readonly keeping?: string;
}

/**
 * Renders the text that is printed when the gateway is ready: its URLs and a command that tries one. Servers with a
 * known failure are listed separately, with the remedy. Only a single server is tried at the start. With several, the
 * text says so and names the `check` command.
 */
export function renderBanner(
  urls: readonly ServerUrls[],
  { needsKey, curlArguments = [], localUrl, statusPage, file, sharing, keeping }: BannerDetails,
): string {
  const width = Math.max(...urls.map(({ server }) => server.length));
  const row = (server: string, url: string): string => `  ${server.padEnd(width)}  ${url}\n`;
  const well = urls.filter(({ failure }) => failure === undefined);
  const untried = urls.length > 1 && file !== undefined ? `  ${untriedLine(file)}\n` : '';
  const endpoints = well.map((each) => row(each.server, each.url + describeOthers(each))).join('');
  const failing = urls
    .map(({ server, url, failure }) => (failure === undefined ? '' : row(server, url) + row('', failure)))
    .join('');
  const behind = localUrl === undefined ? '' : `Listening on ${localUrl} for the proxy\n`;
  const page =
    statusPage === undefined
      ? ''
      : `Status page${needsKey ? `, for a key or token with the scope gangway:status` : ''}:\n  ${statusPage}\n`;
  const shared = sharing === undefined ? '' : `Processes: ${sharing}\n`;
  const kept = keeping === undefined ? '' : `Sessions: ${keeping}\n`;
  const unready = failing && `Not ready:\n${failing}`;
  const [first] = well;
  const trial =
    first === undefined
      ? ''
      : `Try it${needsKey ? ', with a key of yours in place of KEY' : ''}:\n  ${curlLine(first, needsKey, curlArguments)}\n`;
  return `${behind}${endpoints && `Ready:\n${endpoints}${untried}`}${unready}${shared}${kept}${page}${trial}`;
}

/** The other endpoints of a server by their paths, so that a server has one line. */
function describeOthers({ named, sse, ws }: ServerUrls): string {
  const pathOf = (url: string): string => new URL(url).pathname;
  const others = [
    ...(named === undefined ? [] : [`also ${pathOf(named)}`]),
    ...(sse === undefined ? [] : [`HTTP+SSE: ${pathOf(sse)}`]),
    ...(ws === undefined ? [] : [`WebSocket: ${pathOf(ws)}`]),
  ];
  return others.length === 0 ? '' : `  (${others.join(', ')})`;
}

const untriedLine = (file: string): string =>
  `The servers were not checked. To check them: mcp-gangway check --config ${quote([file])}`;

/** Describes where the sessions of a gateway are kept, and what their loss would take. */
export function describeKeeping(config: Pick<GatewayConfig, 'store' | 'redis'>): string {
  if (config.redis !== undefined) return 'kept in Redis.';
  const directory = storeDirectoryOf(config);
  return directory === undefined
    ? 'kept in memory, and lost on restart. --replay.store file:DIRECTORY keeps them.'
    : `kept in ${directory}.`;
}

/**
 * A command that asks the server for its tools, so its output shows that the gateway and the server behind it work. A
 * 2026-07-28 request needs no session, and the gateway translates it for servers of other revisions.
 */
function curlLine({ url }: ServerUrls, needsKey: boolean, curlArguments: readonly string[]): string {
  const key = needsKey ? " -H 'Authorization: Bearer KEY'" : '';
  const more = curlArguments.length > 0 ? ` ${quote([...curlArguments])}` : '';
  return `curl -i${more} -X POST ${url} -H 'Content-Type: application/json'${key} ${listTools()}`;
}

/** The headers of a 2026-07-28 request repeat its method (2026-07-28, basic/transports). */
function listTools(): string {
  const method = 'tools/list';
  const [protocolVersion] = modernRevisions.slice(-1);
  const _meta = { [protocolVersionKey]: protocolVersion, [clientCapabilitiesKey]: {} };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { _meta } });
  return `-H 'MCP-Protocol-Version: ${protocolVersion}' -H 'Mcp-Method: ${method}' -d '${body}'`;
}
