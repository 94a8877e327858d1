// src/http/pipeline: the steps before an endpoint: guard, authentication, quotas, reading, scopes, tracing.
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

/** Options of the admission to every endpoint of a server. */
export interface AdmissionOptions extends RequestGuardOptions {
  readonly authenticate: Authenticate;
  /** Marks credentials, so that the same credentials can be recognised; see `CredentialMarks`. */
  readonly marks: CredentialMarks;
  /** The rules for what admitted senders may do. */
  readonly authorization: Authorization;
  /** Limits for each principal; absent for no limits. */
  readonly quotas?: Quotas;
  /** Limit of one request, or one message on a WebSocket. */
  readonly maxBodyBytes: number;
  /** Observer of refused calls, and of the calls of modern clients, if there is one. */
  readonly calls?: CallObserver | undefined;
  /** Observer of open streams and WebSockets, if there is one. */
  readonly traffic?: ConnectionObserver | undefined;
  /** Called for each request that is not admitted, if set. */
  readonly onRefused?: ((server: string, challenge: Challenge) => void) | undefined;
  /** Creates the spans of requests; absent without tracing. */
  readonly tracePosts?: RequestTracing | undefined;
}

/** The sender of a request, and the values for the server. */
export interface AdmittedRequest {
  readonly identity: Identity;
  /**
   * Owner of whatever this request creates (P11). Where the server runs with the client's own credentials, the same
   * user with other credentials is a different owner.
   */
  readonly principal: Principal;
  readonly forwarded: ForwardedHeaders;
  /** The resources that the request holds. */
  readonly permit: RequestPermit;
}

/** Exactly one of `admitted` and `refused` is called, or neither if the client disconnects first. */
export interface AdmissionCallbacks {
  /** The callee releases the permit at the end of the request. */
  admitted(sender: AdmittedRequest): void;
  refused(challenge: Challenge): void;
  /** A fault of the gateway has ended the request, before or after its admission. */
  failed(): void;
}

/**
 * Creates the admission of requests, by their headers alone. The guard comes first: it costs least and protects the
 * users of browsers. The next checks are authentication, the credentials that the server needs, and the quotas. No body
 * is read before, so that a sender without credentials cannot make the gateway hold data. Admission is synchronous
 * where nothing has to be awaited.
 */
export function createAdmission(
  options: AdmissionOptions,
): (incoming: IncomingMessage, callbacks: AdmissionCallbacks) => void {
  const { server, marks, authorization, quotas = noQuotas, maxBodyBytes, calls } = options;
  const { credentials } = server;
  const authenticate = authorization.guard(options.authenticate);
  const guard = createRequestGuard(options);
  return (incoming, callbacks) => {
    logServer(incoming, server.name);
    if (calls !== undefined) recordRequest(incoming, calls, server.name);
    const forwarded = guard(incoming);
    const refuse = (challenge: Challenge): void => {
      options.onRefused?.(server.name, challenge);
      callbacks.refused(challenge);
    };
    if (typeof forwarded === 'string')
      return refuse({ reason: forwarded, detail: findRefusedHeader(incoming, forwarded) });
    const handleIdentity = (outcome: Identity | Challenge): void => {
      if (isChallenge(outcome)) return refuse(outcome);
      const { principal } = outcome;
      if (calls !== undefined) recordPrincipal(incoming, principal);
      const admit = (owner: Principal, values: ForwardedHeaders): void => {
        const permit = quotas.admitRequest(principal, reservedBytes(incoming, maxBodyBytes));
        if (typeof permit === 'string') callbacks.refused({ reason: permit });
        else callbacks.admitted({ identity: outcome, principal: owner, forwarded: values, permit });
      };
      if (credentials === undefined) return admit(principal, forwarded);
      const result = resolveCredentials(credentials, incoming.headers, readClaims(outcome), forwarded);
      if (!result.ok) return callbacks.refused(createChallenge(result));
      const { values } = result;
      if (credentials.as === 'headers') return admit(principal, values);
      const marked = marks.markOf(server.name, values).then(
        (mark) => {
          if (!incoming.socket.destroyed) admit({ ...principal, credentials: mark }, values);
        },
        (cause: unknown) => {
          if (!(cause instanceof StoreUnavailable)) throw cause;
          callbacks.refused({ reason: 'store_unavailable' });
        },
      );
      detach('request', marked, callbacks.failed);
    };
    const outcome = authenticate(incoming);
    if (!(outcome instanceof Promise)) return handleIdentity(outcome);
    const handled = outcome.then((identity) => {
      if (!incoming.socket.destroyed) handleIdentity(identity);
    });
    detach('request', handled, callbacks.failed);
  };
}

/** Returns the header for which the guard refuses a request. */
function findRefusedHeader({ headers }: IncomingMessage, reason: Reason): RefusalDetail | undefined {
  if (reason === 'origin_not_allowed') return { why: 'Origin', seen: printableText(headers.origin) };
  if (reason === 'bad_host' || reason === 'host_not_allowed') return { why: 'Host', seen: printableText(headers.host) };
  return undefined;
}

/** Keys and proxies name a user without claims: the user becomes the claim `sub`. */
const readClaims = ({ principal, claims }: Identity): Identity['claims'] =>
  principal.subject === '' ? claims : { sub: principal.subject, ...claims };

function createChallenge(result: Exclude<CredentialResult, { ok: true }>): Challenge {
  if (result.lacks === 'room') return { reason: 'forwarded_too_large' };
  const { lacks, name } = result;
  return { reason: lacks === 'header' ? 'credential_missing' : 'claim_missing', data: { [lacks]: name } };
}

/** How long a connection of a refused sender stays open without another request, in seconds. */
const refusedIdleS = 5;

/**
 * A refused sender must not hold a connection for as long as a client. The connection is not closed at once: unread
 * bytes of the body would turn that into a reset, and the client could not read the refusal.
 */
function shortenKeepAlive(outgoing: ServerResponse): void {
  if (!outgoing.shouldKeepAlive) return;
  outgoing.setHeader('connection', 'keep-alive');
  outgoing.setHeader('keep-alive', `timeout=${refusedIdleS}`);
  // Node.js has set its own timeout by then, and clears both with the next request.
  outgoing.once('finish', () => outgoing.req.socket.setTimeout(refusedIdleS * 1_000));
}

/** Creates an endpoint that serves only admitted requests. */
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
        if (entryOf(challenge.reason).status < 500) shortenKeepAlive(outgoing);
        respondWithChallenge(outgoing, challenge);
      },
      failed: () => endAsInternal(outgoing),
    });
}
