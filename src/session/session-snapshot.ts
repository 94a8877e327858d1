import type { SessionPipeline } from './pipeline.ts';
import type { ClientState } from './record/client-state.ts';

/** What a person sees who looks at a session: no content and no id (P12). */
export interface SessionSnapshot {
  readonly kind: 'session' | 'group' | 'one stream';
  /** It has no process now, and gets one when it is used again. */
  readonly isHibernating: boolean;
  /** Requests in flight. */
  readonly calls: number;
  /** Connections that are fed. */
  readonly streams: number;
  /** On the monotonic clock, in milliseconds. */
  readonly startedAt: number;
  readonly lastActivityAt: number;
}

/** Looks at a session. */
export function snapshotSession(
  { isGroup, isOneStream }: ClientState,
  { calls, delivery: outbound, supervisor: upstream }: SessionPipeline,
  times: Pick<SessionSnapshot, 'startedAt' | 'lastActivityAt'>,
): SessionSnapshot {
  const kind = isGroup ? 'group' : isOneStream ? 'one stream' : 'session';
  const isHibernating = upstream.state === 'hibernating';
  return { kind, isHibernating, calls: calls.size, streams: outbound.streams.size, ...times };
}
