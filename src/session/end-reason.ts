import { type Call, failCall } from '../call/call-table.ts';
import type { Reason } from '../protocol/faults.ts';

/** Why a session ended. */
export type SessionEndReason =
  | 'deleted'
  | 'idle'
  | 'operator'
  | 'client_gone'
  | 'refused'
  | 'server_start_failed'
  | 'server_unauthorized'
  | 'server_start_timeout'
  | 'server_exited'
  | 'server_changed'
  | 'crash_loop'
  | 'line_too_long'
  | 'memory_limit'
  | 'reconfigured'
  | 'draining'
  | 'released'
  | 'moved'
  | 'store_unavailable'
  | 'internal';

/** Ends after which a server that keeps sessions by itself is told that this one is over. */
export const isFinal: ReadonlySet<SessionEndReason> = new Set(['deleted', 'operator']);

/** What clients get for their open requests when a session ends. */
export const faultForEnd: Readonly<Record<SessionEndReason, Reason>> = {
  deleted: 'session_ended',
  idle: 'session_ended',
  operator: 'session_ended',
  client_gone: 'session_ended',
  refused: 'session_ended',
  server_start_failed: 'server_start_failed',
  server_unauthorized: 'server_unauthorized',
  server_start_timeout: 'server_start_timeout',
  server_exited: 'server_exited',
  server_changed: 'server_exited',
  crash_loop: 'server_exited',
  line_too_long: 'line_too_long',
  memory_limit: 'memory_limit',
  reconfigured: 'outcome_unknown',
  draining: 'outcome_unknown',
  released: 'outcome_unknown',
  moved: 'outcome_unknown',
  store_unavailable: 'store_unavailable',
  internal: 'internal',
};

/**
 * The fault for a request that never began because its session ended first: nothing of it reached the server. Where the session
 * goes on elsewhere the client sends it again; where it is over, the client is to open another one.
 */
export function faultBeforeStart(reason: SessionEndReason): Reason {
  if (reason === 'moved') return 'store_unavailable';
  if (isLeaving(reason)) return 'draining';
  return reason === 'store_unavailable' || reason === 'internal' ? reason : 'unknown_session';
}

const isLeaving = (reason: SessionEndReason): boolean => reason === 'draining' || reason === 'released';

/**
 * Ends a call with its session. One that its client has cancelled gets no response any more (2025-11-25,
 * basic/utilities/cancellation) but where its POST has to be answered still; the next owner of a released one tells what became of it.
 */
export function endCall(call: Call, reason: SessionEndReason): void {
  const { id, answer, cancelTimer, report: watch } = call;
  const isCancelled = cancelTimer !== undefined && reason !== 'released';
  // Of a session that never was nothing is left: another instance opens one.
  if (call.method === 'initialize' && isLeaving(reason)) failCall(call, 'draining');
  else if (reason === 'moved') answer.abandon(id);
  else if (!isCancelled) failCall(call, faultForEnd[reason]);
  else if (answer.stream === undefined) failCall(call, 'cancelled');
  else watch?.failed('cancelled');
}
