import type { EndedCall } from '../../host.ts';
import { type BackendOwner, backendOwnerKey } from '../../host.ts';
import { LimitedMap } from '../limited-map.ts';

/** The number of sessions whose failures are kept (P8): some end before their last call is counted. */
const maxSessions = 10_000;

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
  readonly #bySession = new LimitedMap<string, Failures>(maxSessions);

  count({ origin, method, outcome }: EndedCall): void {
    if (outcome.kind !== 'ok' && outcome.kind !== 'left') this.#add(origin, method, describeFailure(outcome));
  }

  of(session: BackendOwner): Failures | undefined {
    return this.#bySession.get(backendOwnerKey(session));
  }

  /** Forgets a session that has ended. */
  forget(session: BackendOwner): void {
    this.#bySession.delete(backendOwnerKey(session));
  }

  #add({ server, session }: EndedCall['origin'], method = 'request', failure: string): void {
    if (session === undefined) return;
    const key = backendOwnerKey({ server, session });
    const count = (this.#bySession.get(key)?.count ?? 0) + 1;
    this.#bySession.set(key, { count, last: `${method}: ${failure}`, at: Date.now() });
  }
}

/** Says how a call failed, without anything that the server or the client wrote. */
export function describeFailure(outcome: EndedCall['outcome']): string {
  switch (outcome.kind) {
    case 'fault':
      return `the gateway answered with ${outcome.reason}`;
    case 'error':
      return `the server answered with ${outcome.code === undefined ? 'an error' : `error ${outcome.code}`}`;
    default:
      return 'the tool reported an error';
  }
}
