import type { Agent, OutgoingHttpHeaders } from 'node:http';
import { type Answer, type Exchange, open } from './http-client.ts';

export const modernRevision = '2026-07-28';

const prefix = 'io.modelcontextprotocol/';

/** The keys of `_meta` that tests speak of. */
export const metaKeys = {
  protocolVersion: `${prefix}protocolVersion`,
  clientCapabilities: `${prefix}clientCapabilities`,
  logLevel: `${prefix}logLevel`,
  subscriptionId: `${prefix}subscriptionId`,
} as const;

/** The `_meta` that every request of 2026-07-28 has. */
export const envelope = { [metaKeys.protocolVersion]: modernRevision, [metaKeys.clientCapabilities]: {} };

export interface ModernOptions {
  readonly id?: unknown;
  /** Added to the `_meta` of the request; a key with undefined is taken out. */
  readonly meta?: Readonly<Record<string, unknown>>;
  /** Added to the headers, or in their place; undefined takes one out. */
  readonly headers?: OutgoingHttpHeaders;
  readonly agent?: Agent;
  /** Further members of `params`, for `callModern`. */
  readonly params?: Readonly<Record<string, unknown>>;
}

/** The body of a request of the modern era. */
export const modernBody = (method: string, params: object = {}, { id = 1, meta = {} }: ModernOptions = {}): object => ({
  jsonrpc: '2.0',
  id,
  method,
  params: { ...params, _meta: { ...envelope, ...meta } },
});

/** The headers of a POST with this method, and with a name if it has one. */
export function modernHeaders(method: string, name?: unknown): OutgoingHttpHeaders {
  return {
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    'MCP-Protocol-Version': modernRevision,
    'Mcp-Method': method,
    ...(typeof name === 'string' && { 'Mcp-Name': name }),
  };
}

/** Sends a request of the modern era, without any SDK, and resolves with the headers of the answer. */
export function openModern(
  url: string,
  method: string,
  params: Readonly<Record<string, unknown>> = {},
  options: ModernOptions = {},
): Promise<Exchange> {
  const name = method === 'resources/read' ? params['uri'] : params['name'];
  const headers = { ...modernHeaders(method, name), ...options.headers };
  const given = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
  const { agent } = options;
  return open(url, { headers: given, body: modernBody(method, params, options), ...(agent && { agent }) });
}

/** Sends a request of the modern era and resolves with the whole answer. */
export async function postModern(
  url: string,
  method: string,
  params?: Readonly<Record<string, unknown>>,
  options?: ModernOptions,
): Promise<Answer> {
  return (await openModern(url, method, params, options)).answer();
}

/** Calls a tool and resolves with the whole answer. */
export const callModern = (url: string, name: string, args: object = {}, options?: ModernOptions): Promise<Answer> =>
  postModern(url, 'tools/call', { name, arguments: args, ...options?.params }, options);
