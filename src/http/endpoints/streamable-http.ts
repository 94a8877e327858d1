// src/http/endpoints: one endpoint for each protocol that clients speak.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { cachePerConnection } from '../../auth/cache-per-connection.ts';
import type { CredentialWatch } from '../../auth/credential-watch.ts';
import type { Groups } from '../../era/modern-on-legacy/groups.ts';
import type { ModernServer } from '../../modern/modern-server.ts';
import type { Reason, RequestId } from '../../protocol/faults.ts';
import { type Accepts, readAccept } from '../../protocol/http/media-types.ts';
import { headerOf } from '../../protocol/http/request-header.ts';
import { type Era, namesModernRevision } from '../../protocol/revisions.ts';
import { type EventId, parseEventId } from '../../protocol/wire/event-id.ts';
import type { Sessions } from '../../registry/sessions.ts';
import type { Reply } from '../../reply/reply.ts';
import type { SessionHandle } from '../../session/session-handle.ts';
import { keyFromId } from '../../session/session-key.ts';
import type { Endpoint } from '../http-endpoint.ts';
import { type AdmissionOptions, type AdmittedRequest, behindAdmission } from '../pipeline/admission.ts';
import { authorizeMessages, refusePost, scopesNeededBy } from '../pipeline/authorize-messages.ts';
import { readPostedMessages } from '../pipeline/read-messages.ts';
import { logMessages, logSession, requestIdOf } from '../pipeline/request-log-fields.ts';
import { expiringReply } from '../replies/expiring-reply.ts';
import { HttpReply } from '../replies/http-reply.ts';
import { ResumeReply } from '../replies/resume-reply.ts';
import { respondWithFault } from '../respond.ts';
import { createModernEndpoint } from './modern.ts';
import { createSessionlessEndpoint } from './sessionless.ts';

/** Options of an endpoint. */
export interface StreamableHttpEndpointOptions extends AdmissionOptions {
  readonly sessions: Sessions;
  /** The server for clients of the modern era. */
  readonly modern: ModernServer;
  /** The same server, where it is of the legacy era. */
  readonly groups: Groups;
  /** Whether requests of the legacy era without a session id are served. */
  readonly sessionless: 'serve' | 'reject';
  /** Ends open streams and requests whose credentials have expired. */
  readonly watch: CredentialWatch;
  readonly maxDepth: number;
  readonly keepAliveMs: number;
  readonly slowReaderMs: number;
  readonly commitAfterMs: number;
}

/** Answers an admitted request. */
type MethodHandler = (incoming: IncomingMessage, outgoing: ServerResponse, sender: AdmittedRequest) => void;

/**
 * Creates the Streamable HTTP endpoint of one server (2025-11-25, basic/transports). POST sends messages, GET opens the
 * standalone stream or resumes one, DELETE ends the session. Messages of the modern era go to their own endpoint, even
 * with a session id (2026-07-28, basic/versioning).
 */
export function createStreamableHttpEndpoint(options: StreamableHttpEndpointOptions): Endpoint {
  const { server, sessions, authorization } = options;
  const trace = options.tracePosts?.(server.name, 'http');
  const modernEndpoint = createModernEndpoint(options);
  const sessionlessEndpoint = options.sessionless === 'serve' ? createSessionlessEndpoint(options) : undefined;
  const createReply = (
    outgoing: ServerResponse,
    accepts: Accepts,
    sender: AdmittedRequest,
    id: RequestId | null = null,
    needs?: readonly string[],
    era?: Era,
  ): Reply => {
    const reply = new HttpReply(outgoing, accepts, options, sender, needs);
    return expiringReply(reply, sender.identity, options.watch, id, era);
  };

  const findSession = (incoming: IncomingMessage, { principal }: AdmittedRequest): SessionHandle | Reason => {
    const sessionHeader = readSessionHeader(incoming);
    if (typeof sessionHeader === 'string') return sessionHeader;
    logSession(incoming, sessionHeader.key);
    return sessions.at(sessionHeader.key, server, principal, headerOf(incoming, 'mcp-protocol-version'));
  };

  /** Returns why a client may only POST, if so: there is no session that a GET or DELETE could refer to. */
  const findPostOnlyReason = (incoming: IncomingMessage): Reason | undefined => {
    if (incoming.headers['mcp-session-id'] !== undefined) return undefined;
    if (namesModernRevision(headerOf(incoming, 'mcp-protocol-version'))) return 'post_only';
    return sessionlessEndpoint && 'sessionless_post_only';
  };

  const post: MethodHandler = (incoming, outgoing, sender) => {
    const accepts = readAccept(incoming.headers.accept);
    readPostedMessages(outgoing, options, accepts.json || accepts.sse, (read) => {
      const needs = scopesNeededBy(read, authorization);
      const allowed = authorizeMessages(read, needs, sender.identity, authorization, incoming.url);
      const era = allowed.ok && allowed.modern !== undefined ? 'modern' : 'legacy';
      const plain = createReply(outgoing, accepts, sender, allowed.id, needs, era);
      if (!allowed.ok) return refusePost(allowed, outgoing, plain);
      sender.permit.countMessages(allowed.messages);
      const traced = trace?.(allowed, incoming.headers, requestIdOf(incoming));
      if (traced !== undefined) logMessages(incoming, traced.posted.messages);
      const posted = traced?.posted ?? allowed;
      const reply = traced?.traceReply(plain) ?? plain;
      if (posted.modern !== undefined) return modernEndpoint.post(posted.modern, incoming.headers, sender, reply);
      const { messages, isBatch, initialize, id } = posted;
      const namesSession = incoming.headers['mcp-session-id'] !== undefined;
      if (initialize !== undefined && namesSession) return reply.fault('already_initialized', id);
      if (initialize !== undefined && !isBatch) return sessions.open(server, sender.principal, initialize, reply);
      if (!namesSession && sessionlessEndpoint !== undefined)
        return sessionlessEndpoint.post(posted, headerOf(incoming, 'mcp-protocol-version'), sender, reply);
      const session = findSession(incoming, sender);
      if (typeof session === 'string') return reply.fault(session, id);
      session.post({ messages, isBatch }, reply);
    });
  };

  const get: MethodHandler = (incoming, outgoing, sender) => {
    const accepts = readAccept(incoming.headers.accept);
    if (!accepts.sse) return respondWithFault(outgoing, 'not_acceptable');
    const session = findSession(incoming, sender);
    const after = readLastEventId(incoming);
    if (after === 'malformed')
      return respondWithFault(outgoing, typeof session === 'string' ? session : 'bad_event_id');
    const plain = createReply(outgoing, accepts, sender);
    const reply = after === undefined ? plain : new ResumeReply(plain, after);
    if (typeof session === 'string') return reply.fault(session, null);
    session.listen(after, reply);
  };

  const remove: MethodHandler = (incoming, outgoing, sender) => {
    const session = findSession(incoming, sender);
    if (typeof session === 'string') return respondWithFault(outgoing, session);
    session.remove(createReply(outgoing, readAccept(undefined), sender));
  };

  const methods: ReadonlyMap<string | undefined, MethodHandler> = new Map([
    ['POST', post],
    ['GET', get],
    ['DELETE', remove],
  ]);

  return behindAdmission(options, (incoming, outgoing, sender) => {
    const answer = methods.get(incoming.method);
    if (answer === undefined) return respondWithFault(outgoing, 'method_not_allowed');
    const refusal = incoming.method === 'POST' ? undefined : findPostOnlyReason(incoming);
    if (refusal !== undefined) return respondWithFault(outgoing, refusal);
    answer(incoming, outgoing, sender);
  });
}

function readLastEventId(incoming: IncomingMessage): EventId | undefined | 'malformed' {
  const text = headerOf(incoming, 'last-event-id');
  // An empty Last-Event-ID means that the client has none (WHATWG HTML, section 9.2.3).
  if (text === undefined || text === '') return undefined;
  return parseEventId(text) ?? 'malformed';
}

/** Visible characters (2025-11-25, basic/transports, "Session Management"), up to a length that no real id exceeds. */
const sessionIdPattern = /^[\x21-\x7e]{1,128}$/;

const findSessionKey = cachePerConnection('Mcp-Session-Id', (id) =>
  sessionIdPattern.test(id) ? { key: keyFromId(id) } : undefined,
);

/** Returns the name of the session (`keyFromId`) in the request's header, or the reason why there is none. */
function readSessionHeader({ headers, socket }: IncomingMessage): { readonly key: string } | Reason {
  const id = headers['mcp-session-id'];
  if (id === undefined) return 'session_required';
  return (typeof id === 'string' ? findSessionKey(socket, id) : undefined) ?? 'bad_session_id';
}
