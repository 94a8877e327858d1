/**
 * The guards of the protocol. A run of the model leaves some of them out, to see that the search finds what they prevent.
 *
 * The second group is not in the first text of decision 0015: the model found that it does not hold without them.
 */
export const writtenGuards = [
  /** `append` is refused under any epoch but the record's. */
  'fence',
  /** Nobody takes over from an owner whose lease is held. */
  'declareDead',
  /** The own clock runs out before the lease does in Redis, and is looked at before every word and every hand-over. */
  'ownClock',
  /** In a new term a session is silent until it is registered. */
  'verify',
  /** An append without an answer is asked again until it has one. */
  'askAgain',
  /** An event is sent when it is known to be in the log. */
  'storedFirst',
  /** A deletion leaves a tombstone. */
  'tombstone',
  /** Nobody takes over, or says 404, before its connection has been healthy for a lease. */
  'healthy',
  /** …nor before the data are older than lease + 2 s. */
  'quarantine',
  /** The epoch is at least Redis's TIME, so that it is new also where the last takeover was lost. */
  'epochTime',
  /** A request that its owner was sent, and may have begun, is not run by another unless that is harmless. */
  'outcomeUnknown',
] as const;

export const amendments = [
  /** `register` compares the owner's name, too: a late one must not undo a later one. */
  'registerCompares',
  /** Whose lease ran out, and whose connection broke or birth changed, takes its session over from itself before it speaks. */
  'suspect',
  /** `register` tells whether it found the record or wrote it anew: that, too, says that the store lost something. */
  'restoredTells',
  /** …and the newest seq that the log has, so that lost events are appended again though no new one follows. */
  'registerTells',
  /** An owner by the record that does not hold the session takes it over from itself. */
  'ownName',
  /** The age of the data is asked after the record or the lease was found missing. */
  'freshAge',
  /** A reply counts for the term in which it was asked for. */
  'termOfReply',
  /** No command is sent again by the client library after a reconnect: a retry meets the conditions again. */
  'noResend',
] as const;

/** What the protocol cannot see to. */
export const assumptions = [
  /** A failover breaks every connection to the old master: none goes over to the new one unnoticed. */
  'failoverBreaksConnections',
] as const;

export type Guard = (typeof writtenGuards)[number] | (typeof amendments)[number] | (typeof assumptions)[number];

/** What is explored: the request, and which guards are left out. */
export interface Rules {
  /** A call is answered by JSON; a stream has `events` events; `any`: every instance wants the session, nothing is sent. */
  readonly request: 'call' | 'stream' | 'any';
  readonly events: number;
  /** It may be run again. */
  readonly isHarmless: boolean;
  /** A command reaches Redis in the step that sends it; only its reply takes time. */
  readonly isPrompt: boolean;
  readonly without: ReadonlySet<Guard>;
}

export const has = (rules: Rules, guard: Guard): boolean => !rules.without.has(guard);
