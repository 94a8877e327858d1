import type { Reason } from '../protocol/faults.ts';
import { type Call, failCall } from './calls.ts';

/** Why a session ended. */
export type SessionEnd =
  | 'deleted'
  | 'idle'
  | 'client_gone'
  | 'refused'
  | 'server_start_failed'
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
  | 'internal';

/** What clients get for their open requests when a session ends. */
export const faultAtEnd: Readonly<Record<SessionEnd, Reason>> = {
  deleted: 'session_ended',
  idle: 'session_ended',
  client_gone: 'session_ended',
  refused: 'session_ended',
  server_start_failed: 'server_start_failed',
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
  internal: 'internal',
};

/**
 * Ends a call with its session. One that its client has cancelled gets no response any more (2025-11-25,
 * basic/utilities/cancellation) but where its POST has to be answered still; the next owner of a released one tells what became of it.
 */
export function endCall(call: Call, reason: SessionEnd): void {
  const { id, answer, cancelTimer, watch } = call;
  const isCancelled = cancelTimer !== undefined && reason !== 'released';
  if (reason === 'moved') answer.abandon(id);
  else if (!isCancelled) failCall(call, faultAtEnd[reason]);
  else if (answer.stream === undefined) failCall(call, 'cancelled');
  else watch?.failed('cancelled');
}
