import type { EndedCall } from '../../../call/call-events.ts';
import { type BackendOwner, backendOwnerKey } from '../backend-owner.ts';

/** The failed calls of one session on this instance. */
export interface Failures {
  readonly count: number;
  /** The last failed call: `tools/call: the tool reported an error`. */
  readonly last: string;
  /** The time of the last failed call, in milliseconds since 1970. */
  readonly at: number;
}

/** Records the failed calls of sessions. A call that succeeds costs nothing here. */
export class SessionFailures {
  readonly #bySession = new Map<string, Failures>();

  count({ origin: { server, session }, method = 'request', outcome }: EndedCall): void {
    if (session === undefined || outcome.kind === 'ok' || outcome.kind === 'left') return;
    const key = backendOwnerKey({ server, session });
    const count = (this.#bySession.get(key)?.count ?? 0) + 1;
    this.#bySession.set(key, { count, last: `${method}: ${describeFailure(outcome)}`, at: Date.now() });
  }

  of(session: BackendOwner): Failures | undefined {
    return this.#bySession.get(backendOwnerKey(session));
  }

  /** Forgets a session that has ended. */
  forget(session: BackendOwner): void {
    this.#bySession.delete(backendOwnerKey(session));
  }
}

function describeFailure(outcome: EndedCall['outcome']): string {
  switch (outcome.kind) {
    case 'fault':
      return `the gateway answered with ${outcome.reason}`;
    case 'error':
      return `the server answered with ${outcome.code === undefined ? 'an error' : `error ${outcome.code}`}`;
    default:
      return 'the tool reported an error';
  }
}
