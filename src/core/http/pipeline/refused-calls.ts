import type { Identity } from '../../auth/identity.ts';
import type { CallOrigin, CallTelemetry } from '../../call/call-events.ts';
import { CallReport } from '../../call/call-report.ts';
import type { Reason } from '../../protocol/faults.ts';
import { namesModernRevision } from '../../protocol/known-revisions.ts';
import type { Message } from '../../protocol/message/message.ts';
import type { RequestFacts } from '../../reply/reply.ts';
import type { RequestContext } from '../request-context.ts';

/** The facts about a refused HTTP request that are known by then. */
export interface RefusedRequest
  extends Pick<RequestContext, 'endpoint' | 'headers' | 'header' | 'messages' | 'requestId'> {
  readonly method: string;
  readonly startedAt: number;
  readonly identity: Identity | undefined;
  readonly hasReportedCalls: boolean;
}

/** The HTTP response ends but the call goes on; its owner reports the outcome. */
const endsAnswerOnly: ReadonlySet<Reason> = new Set(['credentials_expired']);

/**
 * Reports a fault response: the calls of the request end with it. A sender that is not admitted is also reported, and
 * so is a POST that cannot be parsed.
 * @returns true if the calls have ended; false if nobody observes them, or if they go on
 */
export function reportRefusal(request: RefusedRequest, reason: Reason): boolean {
  const { endpoint, method, startedAt, identity, messages, hasReportedCalls } = request;
  if (endpoint?.calls === undefined || endsAnswerOnly.has(reason)) return false;
  const { calls, server } = endpoint;
  calls.emit({ type: 'request-refused', server: server.name, reason });
  if (hasReportedCalls) return true;
  if (identity !== undefined && method !== 'POST') return true; // opens or ends a stream or session: no call
  const isModern =
    namesModernRevision(request.header('mcp-protocol-version')) || messages?.some((message) => message.isModern);
  const origin: CallOrigin = {
    server: server.name,
    era: isModern ? 'modern' : 'legacy',
    principal: identity?.principal,
  };
  reportRefusedCalls(calls, origin, messages, reason, { receivedAt: startedAt, requestId: request.requestId });
  return true;
}

/**
 * Reports the end of the calls among messages that are refused together; `messages` is undefined for an unread body.
 */
export function reportRefusedCalls(
  calls: CallTelemetry,
  origin: CallOrigin,
  messages: readonly Message[] | undefined,
  reason: Reason,
  facts?: Partial<RequestFacts>,
): void {
  if (messages === undefined) return new CallReport(calls, origin, undefined, facts).failed(reason);
  for (const message of messages) {
    if (message.kind !== 'request') continue;
    new CallReport(calls, origin, message, facts).failed(reason);
  }
}
