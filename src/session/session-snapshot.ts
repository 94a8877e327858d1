import type { Principal } from '../protocol/principal.ts';
import type { ClientPolicy } from './client/client-policy.ts';
import type { SessionPipeline } from './pipeline.ts';
import type { SessionContext } from './session-context.ts';

/** The view of a session for operators, without its id (P12). */
export interface SessionSnapshot {
  readonly kind: ClientPolicy['kind'];
  readonly principal: Principal;
  /** The client's `initialize` request, which contains the name of the client. Nothing else in it may be shown. */
  readonly initialize: Buffer;
  /** True if the session has no process now. It gets one at the next use. */
  readonly isHibernating: boolean;
  /** Requests in flight. */
  readonly calls: number;
  /** Number of connected streams. */
  readonly streams: number;
  /** On the monotonic clock, in milliseconds. */
  readonly startedAt: number;
  readonly lastActivityAt: number;
}

/** Takes a snapshot of a session. */
export function snapshotSession(
  { policy: { kind }, calls, client: { initialize }, parts: { principal } }: SessionContext,
  { delivery, supervisor }: SessionPipeline,
  times: Pick<SessionSnapshot, 'startedAt' | 'lastActivityAt'>,
): SessionSnapshot {
  const isHibernating = supervisor.state === 'hibernating';
  return { kind, principal, initialize, isHibernating, calls: calls.size, streams: delivery.streams.size, ...times };
}
