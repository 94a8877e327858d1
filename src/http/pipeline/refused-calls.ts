import type { IncomingMessage } from 'node:http';
import { type ArrivalInfo, type CallObserver, type CallOrigin, CallReport } from '../../call/call-report.ts';
import type { Reason } from '../../protocol/faults.ts';
import type { Message } from '../../protocol/message/message.ts';
import type { Principal } from '../../protocol/principal.ts';
import { namesModernRevision } from '../../protocol/revisions.ts';
import { requestIdOf } from './request-log-fields.ts';

/** What is known of a request on its way. */
interface Note {
  readonly calls: CallObserver;
  readonly server: string;
  readonly startedAt: number;
  /** Undefined until its body has come. */
  receivedAt: number | undefined;
  /** Undefined until its sender is let in. */
  principal: Principal | undefined;
  /** Undefined until its body was read. */
  messages: readonly Message[] | undefined;
}

/**
 * Where it is kept on a request, so that nothing between the door and the fault needs to pass it on. A WeakMap, which would keep it
 * beside the request, costs each call several times as much.
 */
const noted = Symbol('what is known of the request');
type Noted = IncomingMessage & { [noted]?: Note | undefined };

/** With this the client's answer ends, not its call: whoever answers that tells of its end. */
const endsAnswerOnly: ReadonlySet<Reason> = new Set(['credentials_expired']);

/** A request has come to an endpoint whose calls somebody wants to be told of. */
export function recordRequest(incoming: IncomingMessage, calls: CallObserver, server: string): void {
  const startedAt = performance.now();
  const note: Note = { calls, server, startedAt, receivedAt: undefined, principal: undefined, messages: undefined };
  (incoming as Noted)[noted] = note;
}

/** Its sender is let in. */
export function recordPrincipal(incoming: IncomingMessage, principal: Principal): void {
  const note = (incoming as Noted)[noted];
  if (note !== undefined) note.principal = principal;
}

/** Its body has come whole. */
export function recordBodyReceived(incoming: IncomingMessage): void {
  const note = (incoming as Noted)[noted];
  if (note !== undefined) note.receivedAt = performance.now();
}

/** When its body had come, on the monotonic clock in milliseconds; undefined if nobody wants to know. */
export const receivedAt = (incoming: IncomingMessage): number | undefined => (incoming as Noted)[noted]?.receivedAt;

/** Its body was read. */
export function recordMessages(incoming: IncomingMessage, messages: readonly Message[]): void {
  const note = (incoming as Noted)[noted];
  if (note !== undefined) note.messages = messages;
}

/**
 * It is answered with a fault: its calls end with that. Also told of are those who are not let in, whatever they wanted, and a
 * POST that cannot be read.
 */
export function reportRefusal(incoming: IncomingMessage, reason: Reason): void {
  const note = (incoming as Noted)[noted];
  if (note === undefined || endsAnswerOnly.has(reason)) return;
  (incoming as Noted)[noted] = undefined;
  const { calls, server, startedAt, principal, messages } = note;
  calls.refused(server, reason);
  if (principal !== undefined && incoming.method !== 'POST') return; // opens or ends a stream or session: no call
  const header = incoming.headers['mcp-protocol-version']?.toString();
  const isModern = namesModernRevision(header) || messages?.some((message) => message.isModern);
  reportRefusedCalls(calls, { server, era: isModern ? 'modern' : 'legacy', principal }, messages, reason, {
    receivedAt: startedAt,
    requestId: requestIdOf(incoming),
  });
}

/** Ends the calls among messages that are refused together; undefined for what was not read. */
export function reportRefusedCalls(
  calls: CallObserver,
  origin: CallOrigin,
  messages: readonly Message[] | undefined,
  reason: Reason,
  came?: ArrivalInfo,
): void {
  if (messages === undefined) return new CallReport(calls, origin, undefined, came).failed(reason);
  for (const message of messages) {
    if (message.kind !== 'request') continue;
    new CallReport(calls, origin, message, came).failed(reason);
  }
}
