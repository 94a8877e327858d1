import type { RequestIds } from '../../../../core/backend/backend.ts';
import type { Call, SessionCalls, StreamTarget } from '../../../../core/call/session-calls.ts';
import { type Route, routed } from '../../../../core/multiplex/route.ts';
import type { Message } from '../../../../core/protocol/message/message.ts';
import { isVendorNotification } from '../../../../core/protocol/message/vendor-notification.ts';
import { methodOf } from '../../../../core/protocol/methods/methods.ts';
import { isWanted } from '../../../../core/protocol/modern/log-levels.ts';
import type { Unattributed } from '../../../../core/session/group-rules.ts';
import { GatewayAnswer } from './gateway-answer.ts';

/**
 * Decides where a server message goes in the session of a group, whose calls belong to many clients (P2, P11). A
 * message with a known call goes there as in other sessions, but the newest call is never a fallback. A server request
 * goes to the newest call for which the server may request input. Log messages and vendor notifications go to the only
 * call in flight, log messages only if its client wants them. Once several users have used the session, they go to
 * nobody: they may be late ones for another user. Changes go to the GET stream.
 */
export function attributeInGroup(
  message: Message,
  calls: SessionCalls,
  route: Route<Call>,
  relatedRequests: RequestIds | undefined,
): StreamTarget | Unattributed {
  const { kind, method } = message;
  if (kind === 'request') return findRequester(message, calls, relatedRequests) ?? 'nobodys';
  if (method === 'notifications/message') return logDestination(message, calls, route, relatedRequests);
  if (method === 'notifications/progress') return reachable(calls.known(message, relatedRequests)) ?? 'nobodys';
  if (!isVendorNotification(message)) return 'get';
  // If the transport names related requests, a message without one has no recipient.
  const only = relatedRequests === undefined ? onlyCall(route) : undefined;
  return reachable(calls.known(message, relatedRequests) ?? only) ?? 'nobodys';
}

function findRequester(
  message: Message,
  calls: SessionCalls,
  relatedRequests: RequestIds | undefined,
): Call | undefined {
  const known = calls.known(message, relatedRequests);
  if (known !== undefined) return methodOf(known.method).mayAsk ? reachable(known) : undefined;
  return newestRequester(calls);
}

/**
 * The newest call that may ask, of those that are not cancelled: a server asks for the call that it works on. Several
 * such calls run at the same time only if all are of one user (`InputGate`).
 */
function newestRequester(calls: SessionCalls): Call | undefined {
  const all = calls.all().filter((call) => methodOf(call.method).mayAsk && !isOfGateway(call));
  const newest = all.findLast(({ cancelTimer }) => cancelTimer === undefined);
  return reachable(newest ?? (all.length === 1 ? all[0] : undefined));
}

function logDestination(
  message: Message,
  calls: SessionCalls,
  route: Route<Call>,
  relatedRequests: RequestIds | undefined,
): Call | Unattributed {
  const wantsMessage = ({ logLevel }: Call): boolean => isWanted(message, logLevel);
  const call = calls.known(message, relatedRequests) ?? onlyCall(route);
  if (call === undefined) return calls.all().some(wantsMessage) ? 'nobodys' : 'unwanted';
  return wantsMessage(call) ? (reachable(call) ?? 'nobodys') : 'unwanted';
}

/**
 * The only call that the server can be working on; undefined if there are several, or none, or if there were several
 * users. In the session of one user, a cancelled call does not count.
 */
function onlyCall(route: Route<Call>): Call | undefined {
  const isOfOneUser = route.isOfOneUser();
  const mayBe = (call: Call): boolean => !isOfGateway(call) && !(isOfOneUser && call.cancelTimer !== undefined);
  return reachable(routed(route.notified(mayBe)));
}

/** True for a request of the gateway itself. No client waits for the answer. */
const isOfGateway = ({ answer }: Call): boolean => answer instanceof GatewayAnswer;

const reachable = (call: Call | undefined): Call | undefined => (call?.answer.hasStream ? call : undefined);
