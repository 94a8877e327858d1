// src/core/http/pipeline: the steps before an endpoint: guard, authentication, quotas, reading, scopes, tracing.

import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { nextNonceOf } from '../../auth/challenges.ts';
import type { Identity } from '../../auth/identity.ts';
import {
  type Authenticate,
  type Challenge,
  isChallenge,
  printableText,
  type RefusalDetail,
} from '../../auth/identity.ts';
import { withSender, withTokenSubject } from '../../auth/request-sender.ts';
import type { Authorization } from '../../auth/scopes/authorization.ts';
import type { CredentialMarks } from '../../keys/credential-marks.ts';
import { nobody } from '../../protocol/affinity.ts';
import type { Reason } from '../../protocol/faults.ts';
import { entryOf } from '../../protocol/faults.ts';
import { type CredentialResult, resolveCredentials } from '../../protocol/http/client-credentials.ts';
import {
  areHeadersTooLarge,
  type ForwardedHeaders,
  memberHeader,
  noHeaders,
  readForwardedHeaders,
} from '../../protocol/http/forwarded-headers.ts';
import type { Principal } from '../../protocol/principal.ts';
import { Quotas } from '../../quota/quotas.ts';
import type { MemberNeeds } from '../../server/server.ts';
import { ifUnavailable } from '../../store/store-unavailable.ts';
import type { Emit } from '../../util/telemetry/emit.ts';
import type { ConnectionEvent, ConnectionMeters } from '../connection-events.ts';
import type { HttpContext } from '../http-context.ts';
import { responseOf } from '../malformed-requests.ts';
import type { ReachedEndpoint } from '../request-context.ts';
import { createRequestGuard, type RequestGuard, type RequestGuardOptions } from './request-guard.ts';
import type { RequestTracing } from './traced-messages.ts';

/** Options of the admission to every endpoint of a server. */
export interface AdmissionOptions extends RequestGuardOptions, ReachedEndpoint {
  readonly server: RequestGuardOptions['server'];
  readonly authenticate: Authenticate;
  /** Marks credentials, so that the same credentials can be recognised; see `CredentialMarks`. */
  readonly marks: CredentialMarks;
  /** The rules for what admitted senders may do. */
  readonly authorization: Authorization;
  /** Limits for each principal; absent for no limits. */
  readonly quotas?: Pick<Quotas, 'admitRequest'>;
  /** Limit of one request, or one message on a WebSocket. */
  readonly maxBodyBytes: number;
  /** Counts open streams and WebSockets; absent if nobody reads the numbers. */
  readonly meters?: ConnectionMeters | undefined;
  /** Reports each request that is not admitted; absent if nobody wants reports. */
  readonly emit?: Emit<ConnectionEvent> | undefined;
  /** Creates the spans of requests; absent without tracing. */
  readonly tracePosts?: RequestTracing | undefined;
  /** True for a request from a proxy, whose connection carries the requests of many clients. */
  readonly isOfProxy?: ((incoming: IncomingMessage) => boolean) | undefined;
}

/** The result of an admission. After `gone` there is nobody to answer. */
export type Verdict = 'admitted' | 'gone' | Challenge;

/**
 * Admits requests by their headers alone. The guard comes first: it costs least and protects the users of browsers. The
 * next steps are authentication, the credentials that the server needs, and the quotas. No body is read before, so that
 * a sender without credentials cannot make the gateway hold data.
 */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #guard: RequestGuard;
  readonly #authenticate: Authenticate;
  readonly #quotas: Pick<Quotas, 'admitRequest'>;

  constructor(options: AdmissionOptions) {
    this.#options = options;
    this.#guard = createRequestGuard(options);
    this.#authenticate = options.authorization.guard(options.authenticate);
    this.#quotas = options.quotas ?? new Quotas();
  }

  /**
   * Decides about a request, at once where nothing has to be awaited. The context of an admitted request has its sender,
   * and holds its permit.
   */
  admit(context: HttpContext): Verdict | Promise<Verdict> {
    context.endpoint = this.#options;
    const forwarded = this.#guard(context.incoming);
    if (typeof forwarded === 'string')
      return this.#refuse(context, { reason: forwarded, detail: findRefusedHeader(context.headers, forwarded) });
    const outcome = this.#authenticate(context.incoming);
    if (!(outcome instanceof Promise)) return this.#identify(context, outcome, forwarded);
    return outcome.then((identity) =>
      context.incoming.socket.destroyed ? 'gone' : this.#identify(context, identity, forwarded),
    );
  }

  #refuse({ incoming }: HttpContext, challenge: Challenge): Challenge {
    const { server, emit, addressOf } = this.#options;
    emit?.({ type: 'sender-refused', server: server.name, challenge, address: addressOf?.(incoming) });
    return challenge;
  }

  #identify(
    context: HttpContext,
    outcome: Identity | Challenge,
    forwarded: ForwardedHeaders,
  ): Verdict | Promise<Verdict> {
    const nonce = nextNonceOf(context.incoming);
    if (nonce !== undefined) context.outgoing.setHeader('dpop-nonce', nonce);
    if (isChallenge(outcome)) return this.#refuse(context, outcome);
    context.identity = outcome;
    const { affinity, memberNeeds } = this.#options.server;
    const found =
      memberNeeds === undefined
        ? this.#valuesOf(context, outcome, forwarded)
        : valuesForMembers(memberNeeds, context, outcome);
    if ('reason' in found) return found;
    const { values, variables } = found;
    const reserve = (owner: Principal): Verdict => this.#reserve(context, outcome, owner, values);
    const markSender = (owner: Principal): Verdict | Promise<Verdict> => {
      if (!affinity?.readsSender) return reserve(owner);
      const sender = affinity.readSender(context.headers, readClaims(outcome));
      return this.#mark(context, sender, (mark = nobody) => reserve({ ...owner, affinity: mark }));
    };
    if (variables === undefined) return markSender(outcome.principal);
    return this.#mark(context, variables, (mark = '') => markSender({ ...outcome.principal, credentials: mark }));
  }

  /** The values of a request for the server, or why it is refused. */
  #valuesOf(context: HttpContext, identity: Identity, forwarded: ForwardedHeaders): ClientValues | Challenge {
    const { credentials, exchangesTokens = false } = this.#options.server;
    const values = exchangesTokens ? withTokenSubject(forwarded, identity, context.incoming) : this.#own(forwarded);
    if (typeof values === 'string') return { reason: values };
    if (credentials === undefined) return { values };
    const result = resolveCredentials(credentials, context.headers, readClaims(identity), values);
    if (!result.ok) return createChallenge(result);
    return { values: result.values, variables: credentials.as === 'variables' ? result.values : undefined };
  }

  /** A challenge of the server comes back by the headers of the request, so these belong to one request alone. */
  #own(forwarded: ForwardedHeaders): ForwardedHeaders {
    return this.#options.passthrough !== undefined && forwarded === noHeaders ? {} : forwarded;
  }

  /** Marks values of a request that may be secrets; undefined for none. */
  async #mark(
    context: HttpContext,
    values: ForwardedHeaders | undefined,
    admit: (mark: string | undefined) => Verdict | Promise<Verdict>,
  ): Promise<Verdict> {
    const { marks, server } = this.#options;
    const marked = values && marks.markOf(server.name, values);
    const mark = await marked?.catch(ifUnavailable({ reason: 'store_unavailable' }));
    if (typeof mark === 'object') return mark;
    return context.incoming.socket.destroyed ? 'gone' : admit(mark);
  }

  #reserve(context: HttpContext, identity: Identity, owner: Principal, forwarded: ForwardedHeaders): Verdict {
    const { shownHeaders } = this.#options.server;
    const values =
      shownHeaders === undefined ? forwarded : withSender(forwarded, identity, context.headers, shownHeaders);
    if (values === 'forwarded_too_large') return { reason: values };
    const bytes = reservedBytes(context.headers, this.#options.maxBodyBytes);
    const permit = this.#quotas.admitRequest(identity.account ?? identity.principal, bytes);
    if (typeof permit === 'string') return { reason: permit };
    context.sender = { identity, principal: owner, forwarded: values };
    context.hold(permit);
    return 'admitted';
  }
}

/**
 * Returns how many bytes a request may hold until it is answered. A chunked request has no known length, so it reserves
 * the maximum until its body is complete.
 */
export function reservedBytes(headers: IncomingHttpHeaders, maxBodyBytes: number): number {
  if (headers['transfer-encoding'] !== undefined) return maxBodyBytes;
  return Math.min(Number(headers['content-length'] ?? 0), maxBodyBytes); // a larger body is refused
}

/** Returns the header for which the guard refuses a request. */
function findRefusedHeader(headers: IncomingHttpHeaders, reason: Reason): RefusalDetail | undefined {
  if (reason === 'origin_not_allowed') return { why: 'Origin', seen: printableText(headers.origin) };
  if (reason === 'bad_host' || reason === 'host_not_allowed') return { why: 'Host', seen: printableText(headers.host) };
  return undefined;
}

/** What the server gets of a client. */
interface ClientValues {
  readonly values: ForwardedHeaders;
  /** Those with which a process starts, and which therefore say whose it is; undefined for none. */
  readonly variables?: ForwardedHeaders | undefined;
}

/** The values of a request for the servers of a view, each under the name of its server. */
function valuesForMembers(
  members: readonly MemberNeeds[],
  { headers, incoming }: HttpContext,
  identity: Identity,
): ClientValues | Challenge {
  const all: Record<string, string> = {};
  const variables: Record<string, string> = {};
  for (const { name, forwardHeaders, credentials } of members) {
    const forwarded = readForwardedHeaders(headers, forwardHeaders);
    if (forwarded === 'too_large') return { reason: 'forwarded_too_large' };
    const result = credentials && resolveCredentials(credentials, headers, readClaims(identity), forwarded);
    if (result?.ok === false) return createChallenge(result);
    const values = result?.values ?? forwarded;
    if (Object.keys(values).length === 0) continue;
    all[memberHeader(name)] = JSON.stringify(values);
    if (credentials?.as === 'variables') variables[name] = JSON.stringify(values);
  }
  const exchanges = members.some(({ exchangesTokens }) => exchangesTokens);
  const values = exchanges ? withTokenSubject(all, identity, incoming) : all;
  if (typeof values === 'string') return { reason: values };
  if (areHeadersTooLarge(values)) return { reason: 'forwarded_too_large' };
  return Object.keys(variables).length === 0 ? { values } : { values, variables };
}

/** Keys and proxies name a user without claims: the user becomes the claim `sub`. */
const readClaims = ({ principal, claims }: Identity): Identity['claims'] =>
  principal.subject === '' ? claims : { sub: principal.subject, ...claims };

function createChallenge(result: Exclude<CredentialResult, { ok: true }>): Challenge {
  if (result.lacks === 'room') return { reason: 'forwarded_too_large' };
  const { lacks, name } = result;
  return { reason: lacks === 'header' ? 'credential_missing' : 'claim_missing', data: { [lacks]: name } };
}

/** Connections that have carried an admitted request. */
const trusted = new WeakSet<Socket>();

/** How long a connection of a refused sender stays open without another request, in seconds. */
const refusedIdleS = 5;

/**
 * A refused sender must not hold a connection for as long as a client. The connection of a proxy is different: it is in
 * a pool for all clients, and one refusal must not end it while another client's request is on its way. The connection is not closed at once: unread
 * bytes of the body would turn that into a reset, and the client could not read the refusal.
 */
function shortenKeepAlive(outgoing: ServerResponse): void {
  if (!outgoing.shouldKeepAlive) return;
  outgoing.setHeader('connection', 'keep-alive');
  outgoing.setHeader('keep-alive', `timeout=${refusedIdleS}`);
  // Node.js has set its own timeout by then, and clears both with the next request. A pipelined one has begun already.
  outgoing.once('finish', () => {
    const { socket } = outgoing.req;
    if (responseOf(socket) === undefined) socket.setTimeout(refusedIdleS * 1_000);
  });
}

/** Serves requests whose sender is admitted. */
export interface AdmittedEndpoint<C extends HttpContext> {
  serve(context: C): void;
}

/** Creates an endpoint that serves only admitted requests. */
export function behindAdmission<C extends HttpContext>(
  options: AdmissionOptions,
  endpoint: AdmittedEndpoint<C>,
): (context: C) => void {
  const admission = new Admission(options);
  const { isOfProxy } = options;
  const conclude = (context: C, verdict: Verdict): void => {
    const { incoming } = context;
    if (verdict === 'admitted') {
      trusted.add(incoming.socket);
      return endpoint.serve(context);
    }
    if (verdict === 'gone') return;
    const mayBeClosed = !trusted.has(incoming.socket) && isOfProxy?.(incoming) !== true;
    if (mayBeClosed && entryOf(verdict.reason).status < 500) shortenKeepAlive(context.outgoing);
    context.refuse(verdict);
  };
  return (context) => {
    const verdict = admission.admit(context);
    if (!(verdict instanceof Promise)) return conclude(context, verdict);
    context.contain(() => verdict.then((decided) => conclude(context, decided)));
  };
}
