import { readAccept } from '../../protocol/http/media-types.ts';
import { headerOf } from '../../protocol/http/request-header.ts';
import { keyFromToken } from '../../session/session-key.ts';
import type { Endpoint } from '../http-endpoint.ts';
import { behindAdmission } from '../pipeline/admission.ts';
import { authorizeMessages, refusePost, scopesNeededBy } from '../pipeline/authorize-messages.ts';
import { modernNotServedData } from '../pipeline/modern-not-served.ts';
import { readPostedMessages } from '../pipeline/read-messages.ts';
import { logMessages, logSession, requestIdOf } from '../pipeline/request-log-fields.ts';
import { expiringReply } from '../replies/expiring-reply.ts';
import { LegacyPostReply, LegacySseReply, type LegacySseReplyOptions } from '../replies/legacy-sse-reply.ts';
import {
  beginningOfStream,
  isEndpointToken,
  type LegacySseResumePoint,
  newEndpointToken,
  parseLegacySseEventId,
} from '../replies/legacy-sse-resume-point.ts';
import { respondWithFault } from '../respond.ts';
import type { StreamableHttpEndpointOptions } from './streamable-http.ts';

/** Options of the two endpoints of one server. */
export type LegacySseOptions = StreamableHttpEndpointOptions & LegacySseReplyOptions;

/**
 * Creates the event stream of HTTP+SSE (2024-11-05, basic/transports), for clients that support no newer transport. GET
 * opens it. With an event id, GET resumes it on any instance, an addition of the gateway to this transport.
 */
export function createLegacySseStream(options: LegacySseOptions): Endpoint {
  const { server, sessions } = options;
  return behindAdmission(options, (incoming, outgoing, sender) => {
    const { principal } = sender;
    if (incoming.method !== 'GET') return respondWithFault(outgoing, 'only_a_stream');
    if (!readAccept(headerOf(incoming, 'accept')).sse) return respondWithFault(outgoing, 'not_acceptable');
    const position = readPosition(headerOf(incoming, 'last-event-id'));
    if (position === undefined) return respondWithFault(outgoing, 'bad_event_id');
    const { token, after } = position;
    logSession(incoming, () => keyFromToken(token, principal));
    const reply = expiringReply(
      new LegacySseReply(outgoing, position, options, sender),
      sender.identity,
      options.watch,
      null,
    );
    if (after.epoch === 0) {
      const refused = sessions.listenBeforeOpen(token, server, principal, after, reply);
      if (refused === undefined)
        reply.stream(); // its `endpoint` event names the URL for `initialize`
      else reply.fault(refused, null);
      return;
    }
    const session = sessions.atToken(token, server, principal, headerOf(incoming, 'mcp-protocol-version'));
    if (typeof session === 'string') reply.fault(session, null);
    else session.listen(after, reply);
  });
}

/** Creates the endpoint to which such clients POST their messages. The answers go to the stream. */
export function createLegacyMessagesEndpoint(options: LegacySseOptions): Endpoint {
  const { server, sessions, authorization } = options;
  const trace = options.tracePosts?.(server.name, 'http');
  return behindAdmission(options, (incoming, outgoing, sender) => {
    const { principal } = sender;
    if (incoming.method !== 'POST') return respondWithFault(outgoing, 'only_messages');
    readPostedMessages(outgoing, options, true, (read) => {
      const needs = scopesNeededBy(read, authorization);
      const allowed = authorizeMessages(read, needs, sender.identity, authorization, incoming.url);
      const postReply = new LegacyPostReply(outgoing, options, sender, needs);
      const plain = expiringReply(postReply, sender.identity, options.watch, allowed.id);
      if (!allowed.ok) return refusePost(allowed, outgoing, plain);
      sender.permit.countMessages(allowed.messages);
      const traced = trace?.(allowed, incoming.headers, requestIdOf(incoming));
      if (traced !== undefined) logMessages(incoming, traced.posted.messages);
      const reply = traced?.traceReply(plain) ?? plain;
      const { messages, isBatch, modern, initialize, id } = traced?.posted ?? allowed;
      if (modern !== undefined) {
        const header = headerOf(incoming, 'mcp-protocol-version');
        return reply.fault('modern_not_served', id, { ...modernNotServedData(modern, header) });
      }
      const token = readToken(incoming.url ?? '');
      if (token === undefined) return reply.fault('unknown_token', id);
      logSession(incoming, () => keyFromToken(token, principal));
      if (initialize !== undefined && !isBatch)
        return sessions.openOneStream(token, server, principal, initialize, reply);
      const session = sessions.atToken(token, server, principal, headerOf(incoming, 'mcp-protocol-version'));
      if (typeof session === 'string') reply.fault(session, id);
      else session.post({ messages, isBatch }, reply);
    });
  });
}

/** Returns the client's position; a new client is at the beginning of a session that it has yet to open. */
function readPosition(lastEventId: string | undefined): LegacySseResumePoint | undefined {
  // An empty Last-Event-ID means that the client has none (WHATWG HTML, section 9.2.3).
  if (lastEventId === undefined || lastEventId === '') return { token: newEndpointToken(), after: beginningOfStream };
  return parseLegacySseEventId(lastEventId);
}

/** Returns the endpoint token of a request, which must have exactly one. */
function readToken(url: string): string | undefined {
  const [token, ...others] = new URLSearchParams(url.slice(url.indexOf('?') + 1)).getAll('token');
  return token !== undefined && others.length === 0 && isEndpointToken(token) ? token : undefined;
}
