import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One request that reached the server. */
export interface GuardedRequest {
  readonly http: string;
  readonly path: string;
  /** The method of the message; undefined for a GET or DELETE. */
  readonly method: string | undefined;
  readonly authorization: string | undefined;
  /** The session that the request names; empty for none. */
  readonly session: string;
}

/** Answers a request for the metadata of the server. */
export type ServeMetadata = (outgoing: ServerResponse, origin: string) => void;

/**
 * A Streamable HTTP server that checks tokens itself, like an upstream with its own OAuth. `narrow` tokens may not call
 * the tool `admin`. The tool `forbidden` returns 403 with a JSON-RPC error, and `closed` 403 with another body. Every
 * other tool returns the token's user.
 */
export interface GuardedServer {
  readonly origin: string;
  readonly url: string;
  readonly seen: readonly GuardedRequest[];
  /** The accepted tokens, and the user of each. */
  readonly tokens: Map<string, string>;
  readonly narrow: Set<string>;
  /** Tokens that are refused from the next `initialize` on. */
  readonly expireAtInitialize: Set<string>;
  /** Methods that need no token. */
  readonly open: Set<string>;
  /** An unknown token gets 403 with a JSON-RPC error instead of 401. */
  refusesWithError: boolean;
  /** The challenge of a 401. `{origin}` stands for the server's origin. */
  challenge: string | undefined;
  metadata: ServeMetadata;
  /** Forgets all sessions, as a restart does. */
  forgetSessions(): void;
  close(): void;
}

const json = (outgoing: ServerResponse, status: number, body: object, headers: Record<string, string> = {}): void =>
  void outgoing.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));

/** Makes a token like a JWT, whose signature nobody checks. */
export const tokenOf = (claims: object): string =>
  ['{"alg":"none"}', JSON.stringify(claims), 'signature']
    .map((part) => Buffer.from(part).toString('base64url'))
    .join('.');

/** The metadata of a server whose authorization server is elsewhere. */
export const usualMetadata: ServeMetadata = (outgoing, origin) =>
  json(outgoing, 200, {
    resource: `${origin}/mcp`,
    authorization_servers: ['https://login.example.com'],
    scopes_supported: ['mcp:use'],
    signed_metadata: 'for the server alone',
  });

/** Starts one on a free port. */
export async function startGuardedServer(): Promise<GuardedServer> {
  const sessions = new Set<string>();
  const seen: GuardedRequest[] = [];
  let origin = '';
  const guarded = {
    tokens: new Map<string, string>(),
    narrow: new Set<string>(),
    expireAtInitialize: new Set<string>(),
    open: new Set<string>(),
    refusesWithError: false,
    challenge: 'Bearer error="invalid_token", resource_metadata="{origin}/.well-known/oauth-protected-resource/mcp"' as
      | string
      | undefined,
    metadata: usualMetadata,
  };

  const handle = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const path = incoming.url ?? '';
    const body = Buffer.concat(await incoming.toArray()).toString();
    const message =
      body === '' ? {} : (JSON.parse(body) as { id?: unknown; method?: string; params?: { name?: string } });
    const { authorization } = incoming.headers;
    const session = String(incoming.headers['mcp-session-id'] ?? '');
    seen.push({ http: incoming.method ?? '', path, method: message.method, authorization, session });
    if (path.startsWith('/.well-known/oauth-protected-resource')) return guarded.metadata(outgoing, origin);
    if (path !== '/mcp') return json(outgoing, 404, {});
    const token = /^Bearer (.+)$/.exec(authorization ?? '')?.[1] ?? '';
    if (message.method === 'initialize' && guarded.expireAtInitialize.has(token)) guarded.tokens.delete(token);
    const user = guarded.tokens.get(token);
    const error = (text: string): void =>
      json(outgoing, 403, { jsonrpc: '2.0', id: message.id, error: { code: -32001, message: text } });
    if (user === undefined && !guarded.open.has(message.method ?? '')) {
      if (guarded.refusesWithError) return error('Token expired');
      const challenge = guarded.challenge?.replaceAll('{origin}', origin);
      return json(
        outgoing,
        401,
        { error: 'invalid_token' },
        challenge === undefined ? {} : { 'www-authenticate': challenge },
      );
    }
    if (guarded.narrow.has(token) && message.params?.name === 'admin')
      return json(
        outgoing,
        403,
        {},
        { 'www-authenticate': 'Bearer error="insufficient_scope", scope="mcp:use mcp:admin"' },
      );
    if (message.params?.name === 'forbidden') return error('Not on Sundays');
    if (message.params?.name === 'closed') return json(outgoing, 403, { error: 'closed' });
    if (message.method === 'server/discover') return json(outgoing, 404, {});
    if (message.method !== 'initialize' && !sessions.has(session))
      return json(outgoing, session === '' ? 400 : 404, {});
    if (incoming.method === 'GET') return void outgoing.writeHead(405).end();
    if (incoming.method === 'DELETE' || message.id === undefined) return void outgoing.writeHead(202).end();
    const created = message.method === 'initialize' ? randomUUID() : undefined;
    if (created !== undefined) sessions.add(created);
    const result =
      message.method === 'initialize'
        ? { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'guarded', version: '1' } }
        : message.method === 'tools/call'
          ? { content: [{ type: 'text', text: user ?? 'nobody' }] }
          : { tools: [] };
    json(
      outgoing,
      200,
      { jsonrpc: '2.0', id: message.id, result },
      created === undefined ? {} : { 'mcp-session-id': created },
    );
  };

  const server = createServer((incoming, outgoing) => void handle(incoming, outgoing));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return Object.assign(guarded, {
    origin,
    url: `${origin}/mcp`,
    seen,
    forgetSessions: () => sessions.clear(),
    close() {
      server.closeAllConnections();
      server.close();
    },
  });
}
