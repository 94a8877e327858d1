import { StreamableHTTPClientTransport as HttpV2, SSEClientTransport as SseV2 } from '@modelcontextprotocol/client';
import { SSEClientTransport as SseV1 } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { WebSocketClientTransport as WebSocketV1 } from '@modelcontextprotocol/sdk/client/websocket.js';
import { WebSocket } from 'ws';
import { webSocketUrlOf } from './websocket-client.ts';

// The SDK needs this browser API, which Node.js has from version 22 on.
globalThis.WebSocket ??= WebSocket as unknown as typeof globalThis.WebSocket;

/** A transport of an official client, of either major, as both make them: `sessionId` is only of Streamable HTTP. */
export type SdkTransport = HttpV1 | HttpV2 | SseV1 | SseV2 | WebSocketV1;

/** The event stream of 2024-11-05 beside a Streamable HTTP endpoint. */
const sseUrlOf = (url: string): URL => new URL(url.endsWith('/mcp') ? url.replace(/mcp$/, 'sse') : '/sse', url);

/**
 * The transport of a client: `http` is Streamable HTTP, `sse` the two endpoints of 2024-11-05, `ws`
 * WebSocket.
 */
export interface Speech<Over extends string = 'http' | 'sse' | 'ws'> {
  readonly over: Over;
  /** The revision that the client requests. */
  readonly revision: string;
}

/** The transports that both major versions support. */
export type CommonSpeech = Speech<'http' | 'sse'>;

export const newestSpeech: CommonSpeech = { over: 'http', revision: '2025-11-25' };

/** Headers of each request, such as credentials. The SDK's WebSocket client can have none. */
export type SdkHeaders = Readonly<Record<string, string>>;

const initWith = (headers: SdkHeaders) => ({ requestInit: { headers } });

/** The transports of each major; `url` is the Streamable HTTP endpoint of a gateway. */
export const transportsV1 = {
  http: (url: string, headers: SdkHeaders = {}) => new HttpV1(new URL(url), initWith(headers)),
  sse: (url: string, headers: SdkHeaders = {}) => new SseV1(sseUrlOf(url), initWith(headers)),
  ws: (url: string) => new WebSocketV1(new URL(webSocketUrlOf(url))),
} satisfies Record<Speech['over'], (url: string, headers?: SdkHeaders) => SdkTransport>;
export const transportsV2 = {
  http: (url: string, headers: SdkHeaders = {}) => new HttpV2(new URL(url), initWith(headers)),
  sse: (url: string, headers: SdkHeaders = {}) => new SseV2(sseUrlOf(url), initWith(headers)),
} satisfies Record<CommonSpeech['over'], (url: string, headers?: SdkHeaders) => SdkTransport>;

/**
 * Makes a client ask for a revision, for which the SDK has no option: it always asks for its newest. Returns how to
 * know what was agreed upon.
 */
export function pinRevision(transport: SdkTransport, revision: string): () => string | undefined {
  let agreed: string | undefined;
  const send = transport.send.bind(transport) as (message: object, ...options: unknown[]) => Promise<void>;
  const pinned = (message: { method?: string; params?: object }, ...options: unknown[]): Promise<void> =>
    send(
      message.method === 'initialize'
        ? { ...message, params: { ...message.params, protocolVersion: revision } }
        : message,
      ...options,
    );
  const setProtocolVersion =
    'setProtocolVersion' in transport ? transport.setProtocolVersion.bind(transport) : () => undefined;
  Object.assign(transport, {
    send: pinned,
    setProtocolVersion(version: string) {
      agreed = version;
      setProtocolVersion(version);
    },
  });
  return () => agreed;
}
