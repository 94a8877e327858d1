import type { ServerResponse } from 'node:http';
import type { ForwardedHeaders } from '../../../../src/core/protocol/http/forwarded-headers.ts';
import {
  type ModernHttpOptions,
  openModernHttp,
} from '../../../../src/features/remote/modern-http/modern-http-backend.ts';
import { type Opened, openBackend } from '../../../core/backend/open-backend.ts';
import { asMessage } from '../../../support/as-message.ts';
import {
  answerTo,
  type HttpServer,
  json,
  type Manners,
  type Received,
  startHttpServer,
} from '../streamable-http/streamable-http-server.ts';

const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** A request of the modern era. */
export const ask = (id: number, method = 'tools/call', params: object = {}) => ({
  jsonrpc: '2.0',
  id,
  method,
  params: { ...params, _meta: meta },
});

export const discover = ask(0, 'server/discover');
export const discovered = { supportedVersions: ['2026-07-28'], capabilities: {}, resultType: 'complete' };

/** The head of a response without a JSON-RPC message in it. */
export const status = (response: ServerResponse, code: number, body = ''): void =>
  void response.writeHead(code).end(body);

/** A response to `server/discover`, and to all else what a test says. */
export const greeting =
  (onPost: (received: Received) => void): ((received: Received) => void) =>
  (received) =>
    received.message.method === 'server/discover' && received.message.id === 0
      ? json(received.response, answerTo(received.message, discovered))
      : onPost(received);

export interface LiveModern extends Opened {
  readonly server: HttpServer;
  /** Which requests each message came beside. */
  readonly origins: readonly (readonly (string | number)[] | undefined)[];
  readonly failures: readonly string[];
  readonly hidden: readonly string[];
  sendWith(message: object, headers: ForwardedHeaders): void;
}

/** A backend in front of a server of the test's. */
export async function openModern(
  onPost: NonNullable<Manners['onPost']>,
  options: Partial<ModernHttpOptions> = {},
): Promise<LiveModern> {
  const server = await startHttpServer({ onPost, onInitialize: onPost });
  const failures: string[] = [];
  const hidden: string[] = [];
  const origins: (readonly (string | number)[] | undefined)[] = [];
  const opened = openBackend(
    (events) =>
      openModernHttp(
        {
          ...{ url: server.url, version: '1.2.3' },
          onPostFailed: (detail, dropped) => void failures.push(`${detail} ${dropped}`),
          onToolsHidden: (names) => void hidden.push(...names),
          ...options,
        },
        events,
      ),
    (messages, of) => void origins.push(...messages.map(() => of)),
  );
  const sendWith = (message: object, headers: ForwardedHeaders): void =>
    void opened.backend.send(asMessage(message), headers);
  return { ...opened, server, origins, failures, hidden, sendWith };
}

/** As `openModern`, of a server that has answered `server/discover`; inboxes start after that. */
export async function openLiveModern(
  onPost: NonNullable<Manners['onPost']> = ({ message, response }) => json(response, answerTo(message)),
  options: Partial<ModernHttpOptions> = {},
): Promise<LiveModern> {
  const live = await openModern(greeting(onPost), options);
  live.send(discover);
  await live.messages.next();
  await live.server.posts.next();
  return live;
}
