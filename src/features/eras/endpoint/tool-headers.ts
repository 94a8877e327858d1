import { KnownByClient } from '../../../core/backend/known-items.ts';
import { MirroredParameters, type MirroredToolParameters } from '../../../core/backend/mirrored-parameters.ts';
import {
  noHeaders,
  type RequestClient,
  readForwardedCredentials,
} from '../../../core/protocol/http/forwarded-headers.ts';
import { type Message, memberValue } from '../../../core/protocol/message/message.ts';
import type { RequestHeaders } from '../../../core/protocol/modern/mirrored-headers.ts';
import { checkParamHeaders, mayMirror } from '../../../core/protocol/modern/param-headers.ts';
import type { Principal } from '../../../core/protocol/principal.ts';
import type { Era } from '../../../core/protocol/revisions.ts';

/** The server whose calls are checked. */
export interface ListingServer {
  /** The era of the server, once the first request has come. */
  readonly era: Era | undefined;
  /** True if the server may list other tools for other users, apart from their credentials for it. */
  readonly distinguishesUsers: boolean;
  /** Gets a page of the server's list as this client would; undefined if the server does not give it in time. */
  listTools(cursor: string | undefined, client: RequestClient): Promise<Buffer | undefined>;
}

/** The outcome of checking a call: undefined if it passes, else the fault. */
export type ParamFault = { readonly header: string } | 'duplicate_key' | undefined;

const paramPrefix = 'mcp-param-';

/**
 * Checks the mirrored parameters of modern clients' calls (2026-07-28, basic/transports/streamable-http, "Server Behavior
 * for Custom Headers") against the known tools of a server of either era. The list is fetched again before a stale list
 * would refuse a call. Each client is judged by the list that it would get itself (P11). A call of an unlisted tool
 * passes; so does every call when no list is available.
 *
 * Hardly any schema of a legacy server mirrors a parameter, and fetching its list can mean starting a process. So such a
 * server is asked only for a call with such a header, or once a list with such a tool has passed.
 */
export class ToolHeaders {
  readonly #server: ListingServer;
  readonly #tools: KnownByClient<RequestClient, MirroredParameters<RequestClient>>;
  /** Requests of one user mostly carry the same object: looking its key up costs less than building it. */
  readonly #userKeys = new WeakMap<Principal, string>();

  constructor(server: ListingServer) {
    this.#server = server;
    const create = () => new MirroredParameters<RequestClient>((cursor, client) => server.listTools(cursor, client));
    this.#tools = new KnownByClient((client) => this.#keyOf(client), create);
  }

  /** Learns from a list of tools, or a page of one, that this client gets. */
  learn(response: Buffer, client: RequestClient): void {
    if (this.#server.era !== 'legacy' || mayMirror(response)) this.#tools.of(client).learn(response);
    else this.#tools.known(client)?.learn(response);
  }

  /** Forgets the tools: the list has changed, or the process was replaced. */
  forget(): void {
    this.#tools.forget();
  }

  /** Checks a call: at once where the tool is known and nothing is wrong, else after asking the server. */
  check(call: Message, headers: RequestHeaders, client: RequestClient): ParamFault | Promise<ParamFault> {
    const isUnlikely = this.#server.era === 'legacy' && !hasMirrored(headers);
    if (isUnlikely && this.#tools.size === 0) return undefined;
    const tools = isUnlikely ? this.#tools.known(client) : this.#tools.of(client);
    const tool = memberValue(call, 'params', 'name');
    if (tools === undefined || typeof tool !== 'string') return undefined; // the server refuses it
    const checkBy = (params: MirroredToolParameters): ParamFault => params && checkParamHeaders(params, call, headers);
    const found = tools.find(tool, client);
    if (found instanceof Promise) return found.then(checkBy);
    const fault = checkBy(found);
    if (fault === undefined || tools.isFresh) return fault;
    return tools.findAnew(tool, client).then(checkBy);
  }

  #keyOf({ principal, forwarded = noHeaders }: RequestClient): string {
    const credentials = readForwardedCredentials(forwarded);
    if (!this.#server.distinguishesUsers) return credentials;
    let user = this.#userKeys.get(principal);
    if (user === undefined) {
      const { issuer, subject, client } = principal;
      user = JSON.stringify([issuer, subject, client]);
      this.#userKeys.set(principal, user);
    }
    return credentials === '' ? user : `${user} ${credentials}`;
  }
}

const hasMirrored = (headers: RequestHeaders): boolean =>
  Object.keys(headers).some((name) => name.startsWith(paramPrefix));
