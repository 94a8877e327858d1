import type { IncomingMessage } from 'node:http';
import { type ArrivalInfo, type CallObserver, type CallOrigin, CallReport } from '../../call/call-report.ts';
import type { Reason } from '../../protocol/faults.ts';
import type { Message } from '../../protocol/message/message.ts';
import type { Principal } from '../../protocol/principal.ts';
import { namesModernRevision } from '../../protocol/revisions.ts';
import { requestIdOf } from './request-log-fields.ts';

/** The facts about a request that are known so far. */
interface RequestRecord {
  readonly calls: CallObserver;
  readonly server: string;
  readonly startedAt: number;
  /** Undefined until the body has arrived. */
  receivedAt: number | undefined;
  /** Undefined until the sender is admitted. */
  principal: Principal | undefined;
  /** Undefined until the body was parsed. */
  messages: readonly Message[] | undefined;
}

/**
 * Key of the record on a request, so that no code between admission and fault needs to pass it on. A WeakMap beside the
 * request would cost each call several times as much.
 */
const recordKey = Symbol('request record');
type RecordedRequest = IncomingMessage & { [recordKey]?: RequestRecord | undefined };

/** The HTTP response ends but the call goes on; its owner reports the outcome. */
const endsAnswerOnly: ReadonlySet<Reason> = new Set(['credentials_expired']);

/** Records that a request has reached an endpoint whose calls are observed. */
export function recordRequest(incoming: IncomingMessage, calls: CallObserver, server: string): void {
  const startedAt = performance.now();
  const record: RequestRecord = {
    calls,
    server,
    startedAt,
    receivedAt: undefined,
    principal: undefined,
    messages: undefined,
  };
  (incoming as RecordedRequest)[recordKey] = record;
}

/** Records that the sender is admitted. */
export function recordPrincipal(incoming: IncomingMessage, principal: Principal): void {
  const record = (incoming as RecordedRequest)[recordKey];
  if (record !== undefined) record.principal = principal;
}

/** Records that the body has arrived whole. */
export function recordBodyReceived(incoming: IncomingMessage): void {
  const record = (incoming as RecordedRequest)[recordKey];
  if (record !== undefined) record.receivedAt = performance.now();
}

/** Returns when the body had arrived, on the monotonic clock in milliseconds; undefined if calls are not observed. */
export const receivedAt = (incoming: IncomingMessage): number | undefined =>
  (incoming as RecordedRequest)[recordKey]?.receivedAt;

/** Records the messages of the body. */
export function recordMessages(incoming: IncomingMessage, messages: readonly Message[]): void {
  const record = (incoming as RecordedRequest)[recordKey];
  if (record !== undefined) record.messages = messages;
}

/**
 * Reports a fault response: the calls of the request end with it. A sender that is not admitted is also reported, and
 * so is a POST that cannot be parsed.
 */
export function reportRefusal(incoming: IncomingMessage, reason: Reason): void {
  const record = (incoming as RecordedRequest)[recordKey];
  if (record === undefined || endsAnswerOnly.has(reason)) return;
  (incoming as RecordedRequest)[recordKey] = undefined;
  const { calls, server, startedAt, principal, messages } = record;
  calls.refused(server, reason);
  if (principal !== undefined && incoming.method !== 'POST') return; // opens or ends a stream or session: no call
  const header = incoming.headers['mcp-protocol-version']?.toString();
  const isModern = namesModernRevision(header) || messages?.some((message) => message.isModern);
  reportRefusedCalls(calls, { server, era: isModern ? 'modern' : 'legacy', principal }, messages, reason, {
    receivedAt: startedAt,
    requestId: requestIdOf(incoming),
  });
}

/**
 * Reports the end of the calls among messages that are refused together; `messages` is undefined for an unread body.
 */
export function reportRefusedCalls(
  calls: CallObserver,
  origin: CallOrigin,
  messages: readonly Message[] | undefined,
  reason: Reason,
  arrival?: ArrivalInfo,
): void {
  if (messages === undefined) return new CallReport(calls, origin, undefined, arrival).failed(reason);
  for (const message of messages) {
    if (message.kind !== 'request') continue;
    new CallReport(calls, origin, message, arrival).failed(reason);
  }
}
