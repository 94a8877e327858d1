import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ForwardedHeaders } from '../protocol/forwarded-headers.ts';
import type { CallObserver } from '../session/call-observer.ts';
import { noQuotas, type Quotas } from '../session/quotas/quotas.ts';
import type { Visit } from '../session/quotas/visit.ts';
import type { Authorization } from './auth/authorization.ts';
import { type Authenticate, type Challenge, type Identity, isChallenge } from './auth/identity.ts';
import { createGuard, type GuardOptions } from './guard.ts';
import { noteRequest, noteSender } from './refused-calls.ts';
import { respondWithChallenge } from './respond.ts';
import { bytesOf, endWith } from './visits.ts';

/** What stands before every endpoint of a server. */
export interface AdmissionOptions extends GuardOptions {
  readonly authenticate: Authenticate;
  /** What those who are let in may do. */
  readonly authorization: Authorization;
  /** What principals may have in use; absent for anything. */
  readonly quotas?: Quotas;
  /** Of one request, or one message on a WebSocket. */
  readonly maxBodyBytes: number;
  /** Is told of calls that are refused, and of those of modern clients; absent if nobody wants to know. */
  readonly calls?: CallObserver | undefined;
}

/** Who sends a request, and what it brings for the server. */
export interface Sender {
  readonly identity: Identity;
  readonly forwarded: ForwardedHeaders;
  /** What the request has in use. */
  readonly visit: Visit;
  /** The scopes that the request needs, where that is known; the session remembers them (`UsedScopes`). */
  readonly needs?: readonly string[] | undefined;
}

/** Who hears whether a request is let in: one of both, once, or none if its client leaves before that is known. */
export interface Doors {
  /** Whoever lets a sender in ends the visit when all is over. */
  admitted(sender: Sender): void;
  refused(challenge: Challenge): void;
}

/**
 * Lets requests in, by their headers alone: first the guard, which costs least and protects the users of browsers, then who
 * sends it, and then whether there may be one more of him. Nothing of a body is read before, so that nobody without credentials can make the gateway hold anything. At once,
 * where the authentication answers at once.
 */
export function createAdmission(options: AdmissionOptions): (incoming: IncomingMessage, doors: Doors) => void {
  const { quotas = noQuotas, maxBodyBytes, calls, server } = options;
  const authenticate = options.authorization.guard(options.authenticate);
  const guard = createGuard(options);
  return (incoming, doors) => {
    if (calls !== undefined) noteRequest(incoming, calls, server.name);
    const forwarded = guard(incoming);
    if (typeof forwarded === 'string') return doors.refused({ reason: forwarded });
    const judge = (outcome: Identity | Challenge): void => {
      if (isChallenge(outcome)) return doors.refused(outcome);
      if (calls !== undefined) noteSender(incoming, outcome.principal);
      const visit = quotas.enter(outcome.principal, bytesOf(incoming, maxBodyBytes));
      if (typeof visit === 'string') doors.refused({ reason: visit });
      else doors.admitted({ identity: outcome, forwarded, visit });
    };
    const outcome = authenticate(incoming);
    if (!(outcome instanceof Promise)) return judge(outcome);
    void outcome.then((late) => {
      if (!incoming.socket.destroyed) judge(late);
    });
  };
}

/** An endpoint that serves those who are let in. */
export function behindAdmission(
  options: AdmissionOptions,
  serve: (incoming: IncomingMessage, outgoing: ServerResponse, sender: Sender) => void,
): (incoming: IncomingMessage, outgoing: ServerResponse) => void {
  const admit = createAdmission(options);
  return (incoming, outgoing) =>
    admit(incoming, {
      admitted(sender) {
        endWith(outgoing, sender.visit);
        serve(incoming, outgoing, sender);
      },
      refused: (challenge) => respondWithChallenge(outgoing, challenge),
    });
}
