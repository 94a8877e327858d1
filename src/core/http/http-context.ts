import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Identity } from '../auth/identity.ts';
import { entryOf, faultMessage, faultText, type Reason, type RequestId } from '../protocol/faults.ts';
import { type Accepts, acceptsPage, readAccept } from '../protocol/http/media-types.ts';
import { givenRequestId, pathOf } from '../protocol/http/request-header.ts';
import { challengeTo } from '../protocol/http/upstream-challenge.ts';
import { namesModernRevision } from '../protocol/known-revisions.ts';
import type { Message } from '../protocol/message/message.ts';
import { type RequestPermit, uncountedRequestPermit } from '../quota/request-permit.ts';
import { reportRefusal } from './pipeline/refused-calls.ts';
import { type Refusal, RequestContext } from './request-context.ts';
import { faultPage, respondWithHtml, respondWithJson } from './respond.ts';

/** Answers one HTTP request to an endpoint. */
export type Endpoint = (context: HttpContext) => void;

/** The facts about one HTTP request, and the way to answer it with a fault. */
export class HttpContext extends RequestContext {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  /** The time at which the head had arrived, on the monotonic clock in ms. */
  readonly startedAt = performance.now();
  /** The id that the request log has given the request; undefined if requests are not logged. */
  logId: string | undefined;
  /** The verified sender; undefined before the authentication. */
  identity: Identity | undefined;
  /** The resources that the request holds. */
  permit: RequestPermit = uncountedRequestPermit;
  /** True if the ends of the calls of this request are reported: its answer is the fault of a call. */
  hasReportedCalls = false;
  /** The name of the request's session in the store; undefined until it is known. */
  sessionKey: string | undefined;
  /** The fault that the request was answered with; undefined if there was none. */
  fault: Reason | undefined;
  /** True if a fault of the gateway itself has ended the response: the request is over, whatever was sent. */
  hasFailed = false;
  #isRefusalReported = false;
  #accepts: Accepts | undefined;
  /** Undefined for none. */
  #closeListeners: (() => void)[] | undefined;

  constructor(incoming: IncomingMessage, outgoing: ServerResponse) {
    super();
    this.incoming = incoming;
    this.outgoing = outgoing;
    outgoing.on('close', () => this.#onClose());
  }

  get headers(): IncomingHttpHeaders {
    return this.incoming.headers;
  }

  get method(): string {
    return this.incoming.method ?? '';
  }

  get url(): string {
    return this.incoming.url ?? '';
  }

  /** The path of the request target, unchanged. */
  get path(): string {
    return pathOf(this.url);
  }

  get accepts(): Accepts {
    this.#accepts ??= readAccept(this.headers.accept);
    return this.#accepts;
  }

  get requestId(): string | undefined {
    return this.logId ?? givenRequestId(this.headers['x-request-id']);
  }

  /** An HTTP request has its quota before its body is read. */
  admitMessages(): undefined {
    return undefined;
  }

  /**
   * Holds the permit until the response has ended, however it ends. `OpenResponses` reports the end of a connection also
   * to the responses that wait behind others.
   */
  hold(permit: RequestPermit): void {
    this.permit = permit;
    this.whenClosed(() => permit.release());
  }

  /** Calls back when the response has ended, however it ended; soon if it has ended already. */
  whenClosed(listener: () => void): void {
    if (this.outgoing.destroyed) queueMicrotask(listener);
    else if (this.#closeListeners === undefined) this.#closeListeners = [listener];
    else this.#closeListeners.push(listener);
  }

  #onClose(): void {
    for (const listener of this.#closeListeners ?? []) listener();
  }

  countMessages(messages: readonly Message[]): void {
    this.permit.countMessages(messages);
  }

  refuse({ reason, id = null, wwwAuthenticate, data }: Refusal): void {
    if (wwwAuthenticate !== undefined) this.outgoing.setHeader('www-authenticate', wwwAuthenticate);
    this.respondWithFault(reason, id, data);
  }

  /**
   * Answers with the refusal of a server at which clients authorize themselves. Its challenge comes from the server of
   * this instance, or in the data of another instance's answer.
   */
  passChallenge(reason: Reason, id: RequestId | null, data: Record<string, unknown> = {}): void {
    const { wwwAuthenticate: received = challengeTo(this.sender.forwarded)?.wwwAuthenticate, ...others } = data;
    const text = typeof received === 'string' ? received : undefined;
    const wwwAuthenticate = this.endpoint?.passthrough?.challengeFor(this.incoming, reason, text);
    this.refuse({ reason, id, wwwAuthenticate, data: others });
  }

  /** Reports that the request is refused, whichever way its client learns of it. */
  reportRefusal(reason: Reason): void {
    if (!this.#isRefusalReported) this.#isRefusalReported = reportRefusal(this, reason);
    this.fault = reason;
  }

  /**
   * Answers with a fault. This is the one place that turns an entry of the fault catalogue into an HTTP response.
   * `MCP-Protocol-Version` tells the era of the client, even if the body was not read. A person who opens the URL in a
   * browser gets a short page instead.
   */
  respondWithFault(reason: Reason, id: RequestId | null = null, data?: Record<string, unknown>): void {
    this.reportRefusal(reason);
    const { status, retryAfterS, allow } = entryOf(reason);
    const headers: Record<string, string> = {};
    // A server may have named a time of its own.
    if (retryAfterS !== undefined) headers['retry-after'] = String(data?.['retryAfterS'] ?? retryAfterS);
    if (allow !== undefined) headers['allow'] = allow;
    if (this.#isOfBrowser()) return respondWithHtml(this.outgoing, status, faultPage(faultText(reason, data)), headers);
    const era = namesModernRevision(this.header('mcp-protocol-version')) ? 'modern' : 'legacy';
    respondWithJson(this.outgoing, status, faultMessage(reason, id, data, era), headers);
  }

  /** True if a person opens the URL in a browser. */
  #isOfBrowser(): boolean {
    const { accept, 'mcp-session-id': session } = this.headers;
    return this.method === 'GET' && session === undefined && acceptsPage(accept);
  }

  /**
   * The request gets `internal`. If its response has begun, the connection ends instead, which a client that can resume
   * recognises.
   */
  fail(): void {
    const { outgoing } = this;
    if (outgoing.writableEnded || outgoing.destroyed) return;
    this.hasFailed = true;
    if (outgoing.headersSent) outgoing.destroy();
    else this.respondWithFault('internal', this.answerId);
  }
}
