import type { BackendEnd } from '../backend/backend.ts';
import type { NoTokenReason } from '../backend/upstream-tokens.ts';
import { type Call, failCall } from '../call/session-calls.ts';
import type { Reason } from '../protocol/faults.ts';

/** The reasons why a session ends, and the fault for its open requests then. */
export const faultForEnd = {
  deleted: 'session_ended',
  idle: 'session_ended',
  operator: 'session_ended',
  client_gone: 'session_ended',
  superseded: 'session_ended',
  refused: 'session_ended',
  server_start_failed: 'server_start_failed',
  server_unauthorized: 'server_unauthorized',
  upstream_token_refused: 'upstream_token_refused',
  upstream_token_unavailable: 'upstream_token_unavailable',
  client_unauthorized: 'server_unauthorized', // the answer makes it the challenge of the server
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
} as const satisfies Readonly<Record<string, Reason>>;

/** Why a session ended. */
export type SessionEndReason = keyof typeof faultForEnd;

/** Ends after which a server that keeps sessions itself is told to end its session too. */
export const isFinal: ReadonlySet<SessionEndReason> = new Set(['deleted', 'operator']);

/** Ends after which the client may come back, and finds the process of the session (docs/decisions/0164). */
export const mayKeepProcess: ReadonlySet<SessionEndReason> = new Set(['deleted', 'client_gone']);

/** True if the session ends because its instance stops. */
export const isLeaving = (reason: SessionEndReason): boolean => reason === 'draining' || reason === 'released';

/**
 * Ends a call with its session. A cancelled call gets no response (2025-11-25, basic/utilities/cancellation), unless
 * its POST still needs an answer. If the session is released, the next owner answers the call.
 */
export function endCall(call: Call, reason: SessionEndReason): void {
  const { answer, cancelTimer, isOverdue = false, report } = call;
  const isCancelled = cancelTimer !== undefined && !isOverdue && reason !== 'released';
  // `initialize` was never answered, so there is no session to hand over. The client retries on another instance.
  if (call.method === 'initialize' && isLeaving(reason)) failCall(call, 'draining');
  // The new owner completes an answer that is a stream, from the log (`Streams.closeAll`).
  else if (reason === 'moved' && answer.stream !== undefined) return;
  else if (!isCancelled || reason === 'moved') failCall(call, faultForEnd[reason]);
  else if (answer.stream === undefined) failCall(call, 'cancelled');
  else report?.failed('cancelled');
}

/** The reason given to calls that end with a lost backend. */
export const lossReason = ({ reason }: BackendEnd): 'line_too_long' | 'memory_limit' | 'server_exited' =>
  reason === 'line_too_long' || reason === 'memory_limit' ? reason : 'server_exited';

/** The reason given to a client whose server could not be started. */
export const failedStartReason = ({
  isUnauthorized = false,
  noToken,
}: BackendEnd): 'server_unauthorized' | 'server_start_failed' | NoTokenReason =>
  noToken ?? (isUnauthorized ? 'server_unauthorized' : 'server_start_failed');
