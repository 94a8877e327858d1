import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type Authenticate,
  type Challenge,
  type Identity,
  isChallenge,
  printableText,
  type RefusalDetail,
} from '../../auth/identity.ts';
import type { Authorization } from '../../auth/scopes/authorization.ts';
import type { CallObserver } from '../../call/call-report.ts';
import type { CredentialMarks } from '../../era/keys/credential-marks.ts';
import { entryOf, type Reason } from '../../protocol/faults.ts';
import { type CredentialResult, resolveCredentials } from '../../protocol/http/client-credentials.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import type { Principal } from '../../protocol/principal.ts';
import { noQuotas, type Quotas } from '../../quota/quotas.ts';
import type { RequestPermit } from '../../quota/request-permit.ts';
import { StoreUnavailable } from '../../store/store-unavailable.ts';
import { detach } from '../../util/boundary.ts';
import type { ConnectionObserver } from '../connection-observer.ts';
import { endAsInternal, respondWithChallenge } from '../respond.ts';
import { recordPrincipal, recordRequest } from './refused-calls.ts';
import { createRequestGuard, type RequestGuardOptions } from './request-guard.ts';
import { logServer } from './request-log-fields.ts';
import { releaseWithResponse, reservedBytes } from './request-permits.ts';
import type { RequestTracing } from './trace-requests.ts';

/** What stands before every endpoint of a server. */
export interface AdmissionOptions extends RequestGuardOptions {
  readonly authenticate: Authenticate;
  /** Marks credentials, so that the same can be recognised; see `CredentialMarks`. */
  readonly marks: CredentialMarks;
  /** What those who are let in may do. */
  readonly authorization: Authorization;
  /** What principals may have in use; absent for anything. */
  readonly quotas?: Quotas;
  /** Of one request, or one message on a WebSocket. */
  readonly maxBodyBytes: number;
  /** Is told of calls that are refused, and of those of modern clients; absent if nobody wants to know. */
  readonly calls?: CallObserver | undefined;
  /** Is told of what stays open; absent if nobody wants to know. */
  readonly traffic?: ConnectionObserver | undefined;
  /** Is told of each request that is not let in; absent if nobody wants to know. */
  readonly onRefused?: ((server: string, challenge: Challenge) => void) | undefined;
  /** Makes spans of requests that could be read; absent where nobody traces. */
  readonly tracePosts?: RequestTracing | undefined;
}

/** Who sends a request, and what it brings for the server. */
export interface AdmittedRequest {
  readonly identity: Identity;
  /**
   * To whom what the request makes belongs (P11): the sender, and at a server that is started with credentials of its client
   * nobody who brings others.
   */
  readonly principal: Principal;
  readonly forwarded: ForwardedHeaders;
  /** What the request has in use. */
  readonly permit: RequestPermit;
}

/** Who hears whether a request is let in: one of both, once, or none if its client leaves before that is known. */
export interface AdmissionCallbacks {
  /** Whoever lets a sender in ends the visit when all is over. */
  admitted(sender: AdmittedRequest): void;
  refused(challenge: Challenge): void;
  /** A fault of the gateway itself has ended the request, before or after it was let in. */
  failed(): void;
}

/**
 * Lets requests in, by their headers alone: first the guard, which costs least and protects the users of browsers, then who
 * sends it, then whether it brings what its server needs of it, and whether there may be one more of him. Nothing of a body is
 * read before, so that nobody without credentials can make the gateway hold anything. At once, where nothing needs to be asked.
 */
export function createAdmission(
  options: AdmissionOptions,
): (incoming: IncomingMessage, doors: AdmissionCallbacks) => void {
  const { server, marks, authorization, quotas = noQuotas, maxBodyBytes, calls } = options;
  const { credentials } = server;
  const authenticate = authorization.guard(options.authenticate);
  const guard = createRequestGuard(options);
  return (incoming, doors) => {
    logServer(incoming, server.name);
    if (calls !== undefined) recordRequest(incoming, calls, server.name);
    const forwarded = guard(incoming);
    const turnAway = (challenge: Challenge): void => {
      options.onRefused?.(server.name, challenge);
      doors.refused(challenge);
    };
    if (typeof forwarded === 'string') return turnAway({ reason: forwarded, detail: seenIn(incoming, forwarded) });
    const judge = (outcome: Identity | Challenge): void => {
      if (isChallenge(outcome)) return turnAway(outcome);
      const { principal } = outcome;
      if (calls !== undefined) recordPrincipal(incoming, principal);
      const admit = (owner: Principal, values: ForwardedHeaders): void => {
        const visit = quotas.admitRequest(principal, reservedBytes(incoming, maxBodyBytes));
        if (typeof visit === 'string') doors.refused({ reason: visit });
        else doors.admitted({ identity: outcome, principal: owner, forwarded: values, permit: visit });
      };
      if (credentials === undefined) return admit(principal, forwarded);
      const brought = resolveCredentials(credentials, incoming.headers, claimsOf(outcome), forwarded);
      if (!brought.ok) return doors.refused(challengeOf(brought));
      const { values } = brought;
      if (credentials.as === 'headers') return admit(principal, values);
      const marked = marks.markOf(server.name, values).then(
        (mark) => {
          if (!incoming.socket.destroyed) admit({ ...principal, credentials: mark }, values);
        },
        (cause: unknown) => {
          if (!(cause instanceof StoreUnavailable)) throw cause;
          doors.refused({ reason: 'store_unavailable' });
        },
      );
      detach('request', marked, doors.failed);
    };
    const outcome = authenticate(incoming);
    if (!(outcome instanceof Promise)) return judge(outcome);
    const judged = outcome.then((late) => {
      if (!incoming.socket.destroyed) judge(late);
    });
    detach('request', judged, doors.failed);
  };
}

/** The header for which the guard refuses a request. */
function seenIn({ headers }: IncomingMessage, reason: Reason): RefusalDetail | undefined {
  if (reason === 'origin_not_allowed') return { why: 'Origin', seen: printableText(headers.origin) };
  if (reason === 'bad_host' || reason === 'host_not_allowed') return { why: 'Host', seen: printableText(headers.host) };
  return undefined;
}

/** Keys and proxies name a user and have no claims: who it is they say all the same. */
const claimsOf = ({ principal, claims }: Identity): Identity['claims'] =>
  principal.subject === '' ? claims : { sub: principal.subject, ...claims };

function challengeOf(brought: Exclude<CredentialResult, { ok: true }>): Challenge {
  if (brought.lacks === 'room') return { reason: 'forwarded_too_large' };
  const { lacks, name } = brought;
  return { reason: lacks === 'header' ? 'credential_missing' : 'claim_missing', data: { [lacks]: name } };
}

/** Seconds for which a connection of somebody who was not let in stays open without another request. */
const strangerIdleS = 5;

/**
 * A stranger must not hold a place among the connections for as long as a client does. The connection is not closed at once: what is
 * left of a body would make it a reset, and the client would not read why it was refused.
 */
function releaseSoon(outgoing: ServerResponse): void {
  if (!outgoing.shouldKeepAlive) return;
  outgoing.setHeader('connection', 'keep-alive');
  outgoing.setHeader('keep-alive', `timeout=${strangerIdleS}`);
  // Node.js has set its own time by then, and clears either with the next request.
  outgoing.once('finish', () => outgoing.req.socket.setTimeout(strangerIdleS * 1_000));
}

/** An endpoint that serves those who are let in. */
export function behindAdmission(
  options: AdmissionOptions,
  serve: (incoming: IncomingMessage, outgoing: ServerResponse, sender: AdmittedRequest) => void,
): (incoming: IncomingMessage, outgoing: ServerResponse) => void {
  const admit = createAdmission(options);
  return (incoming, outgoing) =>
    admit(incoming, {
      admitted(sender) {
        releaseWithResponse(outgoing, sender.permit);
        serve(incoming, outgoing, sender);
      },
      refused(challenge) {
        if (entryOf(challenge.reason).status < 500) releaseSoon(outgoing);
        respondWithChallenge(outgoing, challenge);
      },
      failed: () => endAsInternal(outgoing),
    });
}
