import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ModernServer } from '../modern/modern-server.ts';
import { type EventId, parseEventId } from '../protocol/event-id.ts';
import type { Reason, RequestId } from '../protocol/faults.ts';
import { isJsonContentType, readAccept } from '../protocol/media-types.ts';
import { type Message, type ReadBody, readBody } from '../protocol/message.ts';
import { namesModernRevision } from '../protocol/revisions.ts';
import type { Reply } from '../session/reply.ts';
import type { SessionHandle } from '../session/session-handle.ts';
import type { Server } from '../session/session-parts.ts';
import type { Sessions } from '../session/sessions.ts';
import type { Principal } from '../store/session-records.ts';
import { readRequestBody } from './body.ts';
import { createModernFace } from './modern-face.ts';
import { isHost, type OriginRules } from './origin.ts';
import { createReply } from './reply.ts';
import { respondWithFault } from './respond.ts';
import { hasSingleHeaders } from './single-headers.ts';

/** What an endpoint needs. */
export interface EndpointOptions {
  readonly server: Server;
  readonly sessions: Sessions;
  /** The server as clients of the modern era meet it. */
  readonly modern: ModernServer;
  readonly originRules: OriginRules;
  readonly maxBodyBytes: number;
  readonly maxDepth: number;
  readonly keepAliveMs: number;
  readonly slowReaderMs: number;
  readonly commitAfterMs: number;
}

/** Answers one HTTP request to an endpoint. */
export type Endpoint = (incoming: IncomingMessage, outgoing: ServerResponse) => void;

/** Nobody is asked who they are yet; the record carries its principal all the same. */
const anonymous: Principal = { issuer: '', subject: '', client: '' };

/** More messages than this in one batch are refused: each costs a place in the table of calls. */
const maxBatch = 100;

const sessionIdForm = /^[\x21-\x7e]{1,128}$/;

/**
 * The Streamable HTTP endpoint of one server (2025-11-25, basic/transports): POST brings messages, GET opens the
 * standalone stream or resumes one, DELETE ends the session. What is of the modern era goes to its own face, whatever
 * session it names (2026-07-28, basic/versioning).
 */
export function createEndpoint(options: EndpointOptions): Endpoint {
  const { server, sessions, modern, originRules } = options;
  const modernFace = createModernFace(options);

  const findSession = (incoming: IncomingMessage): SessionHandle | Reason => {
    const id = incoming.headers['mcp-session-id'];
    if (id === undefined) return 'session_required';
    if (typeof id !== 'string' || !sessionIdForm.test(id)) return 'bad_session_id';
    const version = incoming.headers['mcp-protocol-version'];
    return sessions.at(id, server, anonymous, version === undefined ? undefined : String(version));
  };

  /** True for a client of the modern era: it has no session that a GET or DELETE could be about. */
  const hasPostOnly = ({ headers }: IncomingMessage): boolean => {
    if (!modern.servesLegacy) return true;
    return headers['mcp-session-id'] === undefined && namesModernRevision(headers['mcp-protocol-version']?.toString());
  };

  const post: Endpoint = (incoming, outgoing) => {
    const accepts = readAccept(incoming.headers.accept);
    const refused = refusePost(incoming, accepts.json || accepts.sse);
    if (refused !== undefined) return respondWithFault(outgoing, refused);
    readRequestBody(incoming, options.maxBodyBytes, (body) => {
      if (!body.ok) {
        if (body.reason !== 'aborted') respondWithFault(outgoing, body.reason);
        return;
      }
      const reply = createReply(outgoing, accepts, options);
      postMessages(incoming, readBody(withoutBom(body.bytes), options.maxDepth), reply);
    });
  };

  const postMessages = (incoming: IncomingMessage, body: ReadBody, reply: Reply): void => {
    if (!body.ok) return reply.fault(body.reason, null);
    const messages: Message[] = [];
    for (const read of body.messages) {
      if (!read.ok) return reply.fault(read.reason, body.batch ? null : read.id);
      messages.push(read.message);
    }
    const [first] = messages;
    if (first === undefined) return reply.fault('empty_batch', null);
    const id = body.batch ? null : requestId(first);
    if (messages.some((message) => modernFace.takes(message, incoming.headers))) {
      if (body.batch) return reply.fault('modern_batch', null);
      return modernFace.post(first, incoming.headers, reply);
    }
    if (!modern.servesLegacy) return reply.fault('legacy_not_served', id, { supported: modern.revisions });
    const opens = messages.some((message) => message.method === 'initialize' && message.kind === 'request');
    if (opens && incoming.headers['mcp-session-id'] !== undefined) return reply.fault('already_initialized', id);
    if (opens && !body.batch) return sessions.open(server, anonymous, first, reply);
    const session = findSession(incoming);
    if (typeof session === 'string') return reply.fault(session, id);
    if (messages.length > maxBatch) return reply.fault('batch_too_large', null);
    session.post({ messages, isBatch: body.batch }, reply);
  };

  const get: Endpoint = (incoming, outgoing) => {
    const accepts = readAccept(incoming.headers.accept);
    if (!accepts.sse) return respondWithFault(outgoing, 'not_acceptable');
    const session = findSession(incoming);
    if (typeof session === 'string') return respondWithFault(outgoing, session);
    const lastEventId = readLastEventId(incoming);
    if (lastEventId === 'malformed') return respondWithFault(outgoing, 'bad_event_id');
    session.listen(lastEventId, createReply(outgoing, accepts, options));
  };

  const remove: Endpoint = (incoming, outgoing) => {
    const session = findSession(incoming);
    if (typeof session === 'string') return respondWithFault(outgoing, session);
    session.remove(createReply(outgoing, readAccept(undefined), options));
  };

  const methods: ReadonlyMap<string | undefined, Endpoint> = new Map([
    ['POST', post],
    ['GET', get],
    ['DELETE', remove],
  ]);

  return (incoming, outgoing) => {
    const { headers, rawHeaders, method } = incoming;
    if (!hasSingleHeaders(rawHeaders)) return respondWithFault(outgoing, 'duplicate_header');
    if (!isHost(headers.host)) return respondWithFault(outgoing, 'bad_host');
    if (!originRules.allowsHost(headers.host)) return respondWithFault(outgoing, 'host_not_allowed');
    if (!originRules.allowsOrigin(headers.origin)) return respondWithFault(outgoing, 'origin_not_allowed');
    const answer = methods.get(method);
    if (answer === undefined) return respondWithFault(outgoing, 'method_not_allowed');
    if (method !== 'POST' && hasPostOnly(incoming)) return respondWithFault(outgoing, 'post_only');
    answer(incoming, outgoing);
  };
}

/** Why a POST is refused by its headers alone, before its body is read. */
function refusePost(incoming: IncomingMessage, accepts: boolean): Reason | undefined {
  const encoding = incoming.headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') return 'encoded_body';
  if (!isJsonContentType(incoming.headers['content-type'])) return 'bad_content_type';
  return accepts ? undefined : 'not_acceptable';
}

function readLastEventId(incoming: IncomingMessage): EventId | undefined | 'malformed' {
  const text = incoming.headers['last-event-id'];
  // An empty Last-Event-ID means that the client has none (WHATWG HTML, section 9.2.3).
  if (text === undefined || text === '') return undefined;
  return parseEventId(String(text)) ?? 'malformed';
}

const requestId = (message: Message): RequestId | null => (message.kind === 'request' ? (message.id ?? null) : null);

/** RFC 8259, section 8.1: a byte order mark may be ignored. */
const withoutBom = (bytes: Buffer): Buffer =>
  bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
