import { basename, relative } from 'node:path';
import { quote } from 'shell-quote';
import type { GatewayConfig } from '../../config/config.ts';
import { flagOf } from '../../config/options/option-names.ts';
import type { ServerUrls } from '../addresses/server-urls.ts';

/** The scope that shows the status page. */
const pageScope = 'gangway:status';

/** Further details of the banner. */
export interface BannerDetails {
  /** How this program was started, for commands that can be copied: see `programOf`. */
  readonly program: string;
  /** Clients must authenticate. */
  readonly needsKey: boolean;
  /** The key file, if there is one. */
  readonly keysFile?: string | undefined;
  /** The certificate that Node.js must trust to reach the gateway, if no authority has signed it. */
  readonly ca?: string | undefined;
  /** The base URL for a proxy on this machine, if clients use another one. */
  readonly localUrl?: string | undefined;
  /** The URL of the status page, if there is one. */
  readonly statusPage?: string | undefined;
  /** The configuration file, if one was read. */
  readonly file?: string | undefined;
  /** The folder of installed packages; undefined if no server is a package. */
  readonly packagesFolder?: string | undefined;
  /** Sentences about sessions: where they are kept, and which clients share server processes. */
  readonly sessions?: string;
}

/**
 * Renders the text that is printed when the gateway is ready: its URLs, the status page, what happens to sessions, and a
 * command that tries the server. With a single server it is four lines. Servers with a known failure are listed
 * separately, with the remedy. Only a single server is tried at the start. With several, the text says so and names the
 * `check` command.
 */
export function renderBanner(urls: readonly ServerUrls[], details: BannerDetails): string {
  const { localUrl, sessions, program, file, statusPage } = details;
  const well = urls.filter(({ failure }) => failure === undefined);
  const [first] = well;
  const lines = [
    ...(localUrl === undefined ? [] : [`Listening on ${localUrl} for the proxy`]),
    ...(urls.length === 1 && first !== undefined ? [`Ready: ${first.url}${describeOthers(first)}`] : tableOf(urls)),
    ...packagesOf(urls, details),
    ...(statusPage === undefined ? [] : [`Status page: ${statusPage}${describePageKey(details)}`]),
    ...(sessions === undefined ? [] : [`Sessions: ${sessions}`]),
    ...(first === undefined
      ? []
      : [
          urls.length > 1 && file !== undefined
            ? `Check the servers: ${program} check --config ${quote([file])}`
            : `Try it: ${trialOf(first, details)}`,
        ]),
  ];
  return lines.map((line) => `${line}\n`).join('');
}

/** What a server by name has become, or will become: the package, its version, and where it is. */
function packagesOf(urls: readonly ServerUrls[], { packagesFolder }: BannerDetails): string[] {
  const packaged = urls.filter((each) => each.package !== undefined);
  if (packaged.length === 0) return [];
  const texts = packaged.map((each) => (urls.length === 1 ? '' : `${each.server}: `) + each.package);
  return [`Packages: ${texts.join(', ')}; in ${packagesFolder}`];
}

/** One row for each server, first those that work. */
function tableOf(urls: readonly ServerUrls[]): string[] {
  const width = Math.max(...urls.map(({ server }) => server.length));
  const row = (server: string, text: string): string => `  ${server.padEnd(width)}  ${text}`;
  const well = urls.filter(({ failure }) => failure === undefined);
  const failing = urls.flatMap(({ server, url, failure }) =>
    failure === undefined ? [] : [row(server, url), row('', failure)],
  );
  return [
    ...(well.length === 0 ? [] : ['Ready:', ...well.map((each) => row(each.server, each.url + describeOthers(each)))]),
    ...(failing.length === 0 ? [] : ['Not ready:', ...failing]),
  ];
}

/** The command that makes a key for the status page, if clients need keys. */
function describePageKey({ needsKey, keysFile, program }: BannerDetails): string {
  if (!needsKey) return '';
  if (keysFile === undefined)
    return `  (needs the scope ${pageScope}, in an access token or in a key of ${flagOf('auth.apiKeysFile')})`;
  return `  (to make its key: ${program} key NAME --scope ${pageScope} --expires 90d --add ${quote([keysFile])})`;
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

/** Describes where the sessions of a gateway are kept, and what their loss would take. */
export function describeKeeping({ cluster }: Pick<GatewayConfig, 'cluster'>, directory: string | undefined): string {
  if (cluster.redis !== undefined) return 'kept in Redis.';
  return directory === undefined
    ? `kept in memory, and lost on restart (${flagOf('replay.store')} file:DIRECTORY keeps them).`
    : `kept in ${directory}.`;
}

/** A command that connects to the server as a client does, and lists its tools. */
function trialOf({ url }: ServerUrls, { program, needsKey, ca }: BannerDetails): string {
  const trust = ca === undefined ? '' : `NODE_EXTRA_CA_CERTS=${quote([ca])} `;
  const key = needsKey ? ` ${flagOf('headers')} 'Authorization: Bearer KEY'` : '';
  return `${trust}${program} check ${url}${key}`;
}

/**
 * The words that start this program again: the name on the PATH, or the file in a checkout.
 * @param script the path of the program's file, as Node.js got it
 */
export function programOf(script: string, folder: string): string {
  const inFolder = relative(folder, script);
  return basename(script) === 'main.js' && !inFolder.startsWith('..') ? `node ${quote([inFolder])}` : 'mcp-gangway';
}
