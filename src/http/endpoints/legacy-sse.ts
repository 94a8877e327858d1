import { readAccept } from '../../protocol/http/media-types.ts';
import { headerOf } from '../../protocol/http/request-header.ts';
import { keyOfToken } from '../../session/session-key.ts';
import type { Endpoint } from '../http-endpoint.ts';
import { behindAdmission } from '../pipeline/admission.ts';
import { authorized, neededBy, refuse } from '../pipeline/authorize-messages.ts';
import { notServedHere } from '../pipeline/modern-not-served.ts';
import { readPosted } from '../pipeline/read-messages.ts';
import { logMessages, logSession, requestIdOf } from '../pipeline/request-log-fields.ts';
import { endingReply } from '../replies/expiring-reply.ts';
import { PostReply, SseReply, type SseStreamOptions } from '../replies/legacy-sse-reply.ts';
import { beginning, isToken, newToken, parsePlace, type SsePlace } from '../replies/legacy-sse-resume-point.ts';
import { respondWithFault } from '../respond.ts';
import type { EndpointOptions } from './streamable-http.ts';

/** What the two endpoints of one server need. */
export type SseFaceOptions = EndpointOptions & SseStreamOptions;

/**
 * The event stream of HTTP+SSE (2024-11-05, basic/transports), for clients that speak nothing newer: GET opens it, and, with
 * the id of an event, goes on behind that on any instance, which that transport never had.
 */
export function createSseStream(options: SseFaceOptions): Endpoint {
  const { server, sessions } = options;
  return behindAdmission(options, (incoming, outgoing, sender) => {
    const { principal } = sender;
    if (incoming.method !== 'GET') return respondWithFault(outgoing, 'only_a_stream');
    if (!readAccept(headerOf(incoming, 'accept')).sse) return respondWithFault(outgoing, 'not_acceptable');
    const place = placeOf(headerOf(incoming, 'last-event-id'));
    if (place === undefined) return respondWithFault(outgoing, 'bad_event_id');
    const { token, after } = place;
    logSession(incoming, () => keyOfToken(token, principal));
    const reply = endingReply(new SseReply(outgoing, place, options, sender), sender.identity, options.watch, null);
    if (after.epoch === 0) {
      const refused = sessions.expect(token, server, principal, after, reply);
      if (refused === undefined)
        reply.stream(); // which says where `initialize` is to be sent
      else reply.fault(refused, null);
      return;
    }
    const session = sessions.atToken(token, server, principal, headerOf(incoming, 'mcp-protocol-version'));
    if (typeof session === 'string') reply.fault(session, null);
    else session.listen(after, reply);
  });
}

/** Where such clients POST their messages. What is answered to them is on the stream. */
export function createMessagesEndpoint(options: SseFaceOptions): Endpoint {
  const { server, sessions, authorization } = options;
  const trace = options.tracePosts?.(server.name, 'http');
  return behindAdmission(options, (incoming, outgoing, sender) => {
    const { principal } = sender;
    if (incoming.method !== 'POST') return respondWithFault(outgoing, 'only_messages');
    readPosted(outgoing, options, true, (read) => {
      const needs = neededBy(read, authorization);
      const allowed = authorized(read, needs, sender.identity, authorization, incoming.url);
      const said = new PostReply(outgoing, options, sender, needs);
      const plain = endingReply(said, sender.identity, options.watch, allowed.id);
      if (!allowed.ok) return refuse(allowed, outgoing, plain);
      sender.visit.read(allowed.messages);
      const traced = trace?.(allowed, incoming.headers, requestIdOf(incoming));
      if (traced !== undefined) logMessages(incoming, traced.posted.messages);
      const reply = traced?.watch(plain) ?? plain;
      const { messages, isBatch, modern, initialize, id } = traced?.posted ?? allowed;
      if (modern !== undefined) {
        const header = headerOf(incoming, 'mcp-protocol-version');
        return reply.fault('modern_not_served', id, { ...notServedHere(modern, header) });
      }
      const token = tokenOf(incoming.url ?? '');
      if (token === undefined) return reply.fault('unknown_token', id);
      logSession(incoming, () => keyOfToken(token, principal));
      if (initialize !== undefined && !isBatch)
        return sessions.openOneStream(token, server, principal, initialize, reply);
      const session = sessions.atToken(token, server, principal, headerOf(incoming, 'mcp-protocol-version'));
      if (typeof session === 'string') reply.fault(session, id);
      else session.post({ messages, isBatch }, reply);
    });
  });
}

/** Where a client is; a new one is at the beginning of a session that it has yet to open. */
function placeOf(lastEventId: string | undefined): SsePlace | undefined {
  // An empty Last-Event-ID means that the client has none (WHATWG HTML, section 9.2.3).
  if (lastEventId === undefined || lastEventId === '') return { token: newToken(), after: beginning };
  return parsePlace(lastEventId);
}

/** The endpoint token of a request: there is one, and nothing else that looks like it. */
function tokenOf(url: string): string | undefined {
  const [token, ...others] = new URLSearchParams(url.slice(url.indexOf('?') + 1)).getAll('token');
  return token !== undefined && others.length === 0 && isToken(token) ? token : undefined;
}
